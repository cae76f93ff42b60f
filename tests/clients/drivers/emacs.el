;;; emacs.el --- acp.el as a client of an agent  -*- lexical-binding: t; -*-

;;; Commentary:
;; Run by `emacs --batch' with the folder of acp.el in its load path; told what to do, and telling
;; what came of it, as lines of JSON over a connection to a port.

;;; Code:
(require 'acp)
(require 'json)
(require 'seq)

(defvar driver-port (string-to-number (pop command-line-args-left)))
(defvar driver-agent command-line-args-left)
(defvar driver-kind "allow_once")
(defvar driver-rest "")
(setq command-line-args-left nil)

(defvar driver-client
  (acp-make-client :context-buffer (get-buffer-create "*driver*")
                   :command (car driver-agent) :command-params (cdr driver-agent)))

(defun driver-tell (event)
  "Send EVENT, an alist, to whoever drives this."
  (process-send-string driver-test (concat (json-serialize event :false-object :false) "\n")))

(defun driver-done (id)
  "The handlers of the request ID: what is told of its result and of its failure."
  (list :on-success (lambda (result)
                      (driver-tell `((event . "done") (id . ,id) (result . ,(or result (make-hash-table))))))
        :on-failure (lambda (failure _message)
                      (driver-tell `((event . "done") (id . ,id)
                                     (error . ,(format "%s" (map-elt failure 'message))))))))

(defun driver-send (id request)
  "Send REQUEST and tell of its end as that of step ID."
  (apply #'acp-send-request :client driver-client :request request (driver-done id)))

(defun driver-do (step)
  "Do STEP, an alist."
  (let ((id (map-elt step 'id)) (session (map-elt step 'session)) (cwd (map-elt step 'cwd)))
    (pcase (map-elt step 'do)
      ("initialize" (driver-send id (acp-make-initialize-request
                                     :protocol-version 1 :read-text-file-capability t
                                     :write-text-file-capability t)))
      ("new" (driver-send id (acp-make-session-new-request :cwd cwd)))
      ("load" (driver-send id (acp-make-session-load-request :session-id session :cwd cwd)))
      ("resume" (driver-send id (acp-make-session-resume-request :session-id session :cwd cwd)))
      ("mode" (driver-send id (acp-make-session-set-mode-request
                               :session-id session :mode-id (map-elt step 'mode))))
      ("prompt" (driver-send id (acp-make-session-prompt-request
                                 :session-id session :prompt (map-elt step 'blocks))))
      ("cancel" (acp-send-notification
                 :client driver-client
                 :notification (acp-make-session-cancel-notification :session-id session))
       (driver-tell `((event . "done") (id . ,id) (result . ,(make-hash-table)))))
      ("answer" (setq driver-kind (map-elt step 'kind))
       (driver-tell `((event . "done") (id . ,id) (result . ,(make-hash-table))))))))

(defun driver-serve (request)
  "Answer REQUEST of the agent."
  (let ((id (map-elt request 'id)) (params (map-elt request 'params)))
    (pcase (map-elt request 'method)
      ("session/request_permission"
       (let* ((options (append (map-elt params 'options) nil))
              (chosen (seq-find (lambda (each) (equal (map-elt each 'kind) driver-kind)) options)))
         (driver-tell `((event . "asked")
                        (kinds . ,(vconcat (mapcar (lambda (each) (map-elt each 'kind)) options)))))
         (acp-send-response :client driver-client
                            :response (acp-make-session-request-permission-response
                                       :request-id id :option-id (map-elt chosen 'optionId)))))
      ("fs/read_text_file"
       (driver-tell `((event . "read") (path . ,(map-elt params 'path))))
       (acp-send-response
        :client driver-client
        :response (acp-make-fs-read-text-file-response
                   :request-id id
                   :content (with-temp-buffer
                              (when (file-exists-p (map-elt params 'path))
                                (insert-file-contents (map-elt params 'path)))
                              (buffer-string)))))
      ("fs/write_text_file"
       (driver-tell `((event . "wrote") (path . ,(map-elt params 'path))))
       (let ((coding-system-for-write 'utf-8-unix))
         (write-region (map-elt params 'content) nil (map-elt params 'path) nil 'silent))
       (acp-send-response :client driver-client
                          :response (acp-make-fs-write-text-file-response :request-id id)))
      (method (acp-send-response :client driver-client
                                 :response `((:request-id . ,id)
                                             (:error . ,(acp-make-error
                                                         :code -32601 :message (format "no %s" method)))))))))

(defun driver-heard (_process text)
  "Do every step that is complete in TEXT."
  (let ((lines (split-string (concat driver-rest text) "\n")))
    (setq driver-rest (car (last lines)))
    (dolist (line (butlast lines))
      (driver-do (json-parse-string line :object-type 'alist :false-object :false)))))

(defvar driver-test
  (make-network-process :name "test" :host "127.0.0.1" :service driver-port
                        :coding 'utf-8-unix :filter #'driver-heard))

(acp-subscribe-to-notifications
 :client driver-client
 :on-notification (lambda (told)
                    (driver-tell `((event . "update") (update . ,(map-nested-elt told '(params update)))))))
(acp-subscribe-to-requests :client driver-client :on-request #'driver-serve)

(while (process-live-p driver-test)
  (accept-process-output nil 0.1))
(acp-shutdown :client driver-client)
;;; emacs.el ends here
