-- A database as version 1 of the tables made it.
PRAGMA application_id = 0x63726F77;
PRAGMA user_version = 1;
CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    cwd TEXT NOT NULL,
    directories TEXT NOT NULL,
    title TEXT NOT NULL,
    created TEXT NOT NULL,
    updated TEXT NOT NULL,
    touched INTEGER NOT NULL,
    model TEXT,
    mode TEXT NOT NULL,
    options TEXT NOT NULL,
    usage TEXT NOT NULL,
    parent TEXT,
    agent_type TEXT NOT NULL,
    forked_from TEXT,
    segment INTEGER NOT NULL,
    start INTEGER NOT NULL,
    messages INTEGER NOT NULL
) STRICT;
INSERT INTO sessions VALUES(1,'old','/','[]','shout hi','2026-11-21T13:47:17.323Z','2026-11-21T13:47:17.334Z',1,NULL,'default','{}','{"total":{},"last":null,"anchor":0}',NULL,'',NULL,0,0,4);
CREATE INDEX sessions_touched ON sessions (touched);
CREATE TABLE log (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    segment INTEGER NOT NULL,
    kind TEXT NOT NULL,
    at REAL NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (session, seq)
) STRICT;
INSERT INTO log VALUES(1,1,0,0,'message',1795268837.0,'{"role":"user","content":"shout hi"}');
INSERT INTO log VALUES(2,1,1,0,'message',1795268837.0,'{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"shout","arguments":"{\"word\": \"hi\"}"}}]}');
INSERT INTO log VALUES(3,1,2,0,'started',1795268837.0,'{"call_id":"call_1","args":{"word":"hi"},"title":"shout","kind":"other","locations":[]}');
INSERT INTO log VALUES(4,1,3,0,'result',1795268837.0,'{"call_id":"call_1","name":"shout","args":{"word":"hi"},"title":"shout","kind":"other","locations":[],"outcome":"ok","duration":0.0005154049995326204,"content":"HI","error":false,"data":null,"diffs":[],"places":[]}');
INSERT INTO log VALUES(5,1,4,0,'answer',1795268837.0,'{"call_id":"call_1"}');
INSERT INTO log VALUES(6,1,5,0,'message',1795268837.0,'{"role":"assistant","content":"It said: HI"}');
CREATE TABLE states (
    session INTEGER NOT NULL REFERENCES sessions (key) ON DELETE CASCADE,
    name TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (session, name)
) STRICT, WITHOUT ROWID;
