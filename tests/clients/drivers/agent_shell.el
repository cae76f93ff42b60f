;;; agent_shell.el --- agent-shell as a client of an agent  -*- lexical-binding: t; -*-

;;; Commentary:
;; Run by `emacs --batch' with the folders of agent-shell, shell-maker and acp.el in its load path; told
;; what to do, and telling what came of it, as lines of JSON over a connection to a port.  What is done
;; is what a person does there: a shell is started, a prompt is submitted in its buffer.

;;; Code:
(require 'agent-shell)
(require 'cl-lib)
(require 'json)

(defvar driver-port (string-to-number (pop command-line-args-left)))
(defvar driver-agent command-line-args-left)
(defvar driver-kind "allow_once")
(defvar driver-rest "")
(defvar driver-shell nil)
(defvar driver-opening nil "The step that opens a session.")
(defvar driver-wanted nil "The session that is to be opened, if it is not a new one.")
(defvar driver-steering nil "The step that says something to a run that is on.")
(defvar driver-prompts nil "The steps that are prompts, in their sequence.")
(setq command-line-args-left nil
      agent-shell-session-strategy 'new
      agent-shell-session-restore-verbosity 'full
      agent-shell-permission-responder-function #'driver-answer)

(defun driver-tell (event)
  "Send EVENT, an alist, to whoever drives this."
  (process-send-string driver-test (concat (json-serialize event :false-object :false) "\n")))

(defun driver-done (id &optional result)
  "Tell that step ID has come to its end with RESULT."
  (driver-tell `((event . "done") (id . ,id) (result . ,(or result (make-hash-table))))))

(defun driver-failed (id why)
  "Tell that step ID was refused, and WHY."
  (driver-tell `((event . "done") (id . ,id) (error . ,why))))

(defun driver-answer (permission)
  "Answer the question PERMISSION as a person does who was told to."
  (let ((options (map-elt permission :options)))
    (driver-tell `((event . "asked")
                   (kinds . ,(vconcat (mapcar (lambda (each) (map-elt each :kind)) options)))))
    (funcall (map-elt permission :respond)
             (map-elt (seq-find (lambda (each) (equal (map-elt each :kind) driver-kind)) options)
                      :option-id))
    t))

(defun driver-config ()
  "How the shell starts the agent."
  (agent-shell-make-agent-config
   :identifier 'crow :mode-line-name "Crow" :buffer-name "Crow"
   :shell-prompt "Crow> " :shell-prompt-regexp "Crow> "
   :client-maker (lambda (buffer)
                   (acp-make-client :command (car driver-agent) :command-params (cdr driver-agent)
                                    :context-buffer buffer))))

(defun driver-open (id cwd &optional session)
  "Start a shell in CWD for step ID; with SESSION it shows that one."
  (setq driver-opening id
        driver-wanted session)
  (let ((default-directory (file-name-as-directory cwd)))
    (setq driver-shell (agent-shell-start :config (driver-config) :session-id session)))
  (agent-shell-subscribe-to :shell-buffer driver-shell :on-event #'driver-heard-of)
  (driver-listen))

(defun driver-state (&rest keys)
  "What the shell holds under KEYS."
  (map-nested-elt (buffer-local-value 'agent-shell--state driver-shell) keys))

(defvar driver-client nil "The client that is listened to.")

(defun driver-listen ()
  "Tell of every update, once the shell has a client."
  (when-let* ((client (driver-state :client)) ((not (eq client driver-client))))
    (setq driver-client client)
    (acp-subscribe-to-notifications
     :client client
     :on-notification (lambda (told)
                        (driver-tell `((event . "update")
                                       (update . ,(map-nested-elt told '(params update)))))))))

(defun driver-heard-of (event)
  "Look at an EVENT of the shell."
  (driver-listen)
  (pcase (map-elt event :event)
    ((or 'prompt-ready 'session-restored)
     (when-let* ((id driver-opening) (session (driver-state :session :id)))
       (setq driver-opening nil)
       (if (member driver-wanted (list nil session))
           (driver-done id `((sessionId . ,session)))
         (driver-failed id (driver-shown)))))
    ('prompt-injected
     (driver-done driver-steering
                  `((outcome . ,(symbol-name (map-nested-elt event '(:data :outcome)))))))
    ('turn-complete
     (driver-done (pop driver-prompts)
                  `((stopReason . ,(map-nested-elt event '(:data :stop-reason))))))
    ('error
     (let ((why (format "%s" (map-nested-elt event '(:data :message)))))
       (cond (driver-opening (driver-failed driver-opening why) (setq driver-opening nil))
             (driver-prompts (driver-failed (pop driver-prompts) why)))))))

(defun driver-shown ()
  "What is in the buffer."
  (with-current-buffer driver-shell (buffer-substring-no-properties (point-min) (point-max))))

(defun driver-text (block)
  "BLOCK of a prompt as it is typed: a text, or the name of a file with what is not one."
  (if (equal (map-elt block 'type) "image")
      (let ((file (make-temp-file "driver" nil ".png"))
            (coding-system-for-write 'binary))
        (write-region (base64-decode-string (map-elt block 'data)) nil file nil 'silent)
        (concat "@" file))
    (map-elt block 'text)))

(defun driver-prompt (id blocks)
  "Submit BLOCKS for step ID."
  (setq driver-prompts (append driver-prompts (list id)))
  (let ((text (mapconcat #'driver-text blocks " ")))
    (with-current-buffer driver-shell
      (if (shell-maker-busy)
          (agent-shell-prompt-queue text)
        (agent-shell-insert :text text :submit t :no-focus t :shell-buffer driver-shell)))))

(defun driver-mode (id mode)
  "Choose MODE, which is an id, for step ID."
  (with-current-buffer driver-shell
    (let ((name (agent-shell--resolve-session-mode-name
                 mode (agent-shell--get-available-modes (agent-shell--state)))))
      (cl-letf (((symbol-function 'completing-read) (lambda (&rest _) name)))
        (agent-shell-set-session-mode (lambda (&rest _) (driver-done id)))))))

(defun driver-do (step)
  "Do STEP, an alist."
  (let ((id (map-elt step 'id)))
    (condition-case failure
        (pcase (map-elt step 'do)
          ("initialize" (driver-done id))
          ("new" (driver-open id (map-elt step 'cwd)))
          ("load" (driver-open id (map-elt step 'cwd) (map-elt step 'session)))
          ("resume" (setq agent-shell-session-restore-verbosity 'minimal)
           (driver-open id (map-elt step 'cwd) (map-elt step 'session)))
          ("steer" (setq driver-steering id)
           (with-current-buffer driver-shell (agent-shell-prompt-inject (map-elt step 'text))))
          ("mode" (driver-mode id (map-elt step 'mode)))
          ("prompt" (driver-prompt id (map-elt step 'blocks)))
          ("cancel" (with-current-buffer driver-shell (agent-shell-interrupt t)) (driver-done id))
          ("shown" (driver-done id `((text . ,(driver-shown)))))
          ("answer" (setq driver-kind (map-elt step 'kind)) (driver-done id)))
      (error (driver-failed id (error-message-string failure))))))

(defun driver-heard (_process text)
  "Do every step that is complete in TEXT."
  (let ((lines (split-string (concat driver-rest text) "\n")))
    (setq driver-rest (car (last lines)))
    (dolist (line (butlast lines))
      (driver-do (json-parse-string line :object-type 'alist :false-object :false)))))

(defvar driver-test
  (make-network-process :name "test" :host "127.0.0.1" :service driver-port
                        :coding 'utf-8-unix :filter #'driver-heard))

(while (process-live-p driver-test)
  (accept-process-output nil 0.1))
(when driver-client
  (acp-shutdown :client driver-client))
;;; agent_shell.el ends here
