;;; fim-eglot.el --- fim-server in Emacs with eglot  -*- lexical-binding: t; -*-

;; Emacs 29 or newer, or eglot 1.9 or newer from GNU ELPA.  In init.el: (load "/path/to/fim-eglot.el").
;; eglot knows no inline completion: what fim-server offers is in the list of M-x completion-at-point (C-M-i).
;; Texts of several lines come only where yasnippet is installed, since eglot takes them through it.

;;; Code:

(require 'eglot)

(defgroup fim-server nil "Completions that always fit." :group 'eglot)

(defcustom fim-server-command '("fim-server" "serve")
  "The server and its arguments."
  :type '(repeat string))

(defcustom fim-server-settings nil
  "The server's settings as a property list, as in docs/protocol.md: (:deadlineMs 800)."
  :type 'plist)

(add-to-list 'eglot-server-programs
             `((python-mode python-ts-mode go-mode go-ts-mode java-mode java-ts-mode rust-mode rust-ts-mode
                js-json-mode json-ts-mode json-mode)
               . ,(lambda (&rest _) `(,@fim-server-command :initializationOptions ,fim-server-settings))))

;; Where gopls, jdtls or rust-analyzer shall run instead, take out the modes here and above.
(dolist (hook '(python-base-mode-hook go-mode-hook go-ts-mode-hook java-mode-hook java-ts-mode-hook
                rust-mode-hook rust-ts-mode-hook js-json-mode-hook))
  (add-hook hook #'eglot-ensure))

(defun fim-server-explain ()
  "Say what may come at point, and what the model would write."
  (interactive)
  (let ((explanation (jsonrpc-request (eglot-current-server) :workspace/executeCommand
                                      (list :command "fim-server.explainAt"
                                            :arguments (vector (list :uri (plist-get (eglot--TextDocumentIdentifier) :uri)
                                                            :position (eglot--pos-to-lsp-position)))))))
    (with-help-window "*fim-server*"
      (princ (format "Guarantee: %s\nShortest text that fits: %s\nWhat may come: %s\n"
                     (plist-get explanation :guarantee)
                     (plist-get explanation :shortest)
                     (string-join (plist-get explanation :expected) " "))))))

(provide 'fim-eglot)
;;; fim-eglot.el ends here
