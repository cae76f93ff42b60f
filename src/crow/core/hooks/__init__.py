"""How hooks are hung, called and heard; what they see."""
