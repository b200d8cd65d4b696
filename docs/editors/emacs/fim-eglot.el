;;; fim-eglot.el --- fim-server in Emacs with eglot  -*- lexical-binding: t; -*-

;; Emacs 29 or newer, or eglot 1.9 or newer from GNU ELPA.  In init.el: (load "/path/to/fim-eglot.el").
;; eglot has no inline completion: the suggestions are in the list of M-x completion-at-point (C-M-i).
;; Suggestions of several lines need yasnippet.

;;; Code:

(require 'eglot)

(defgroup fim-server nil "Suggestions that always parse." :group 'eglot)

(defcustom fim-server-command '("fim-server" "serve")
  "The server and its arguments."
  :type '(repeat string))

(defcustom fim-server-settings nil
  "The server's settings as a property list, as in docs/protocol.md: (:deadlineMs 800)."
  :type 'plist)

(add-to-list 'eglot-server-programs
             `((python-mode python-ts-mode go-mode go-ts-mode java-mode java-ts-mode rust-mode rust-ts-mode
                (js-mode :language-id "javascript") (js-ts-mode :language-id "javascript")
                (typescript-mode :language-id "typescript") (typescript-ts-mode :language-id "typescript")
                (tsx-ts-mode :language-id "typescriptreact")
                js-json-mode json-ts-mode json-mode
                c-mode c-ts-mode (c++-mode :language-id "cpp") (c++-ts-mode :language-id "cpp")
                csharp-mode csharp-ts-mode kotlin-mode kotlin-ts-mode swift-mode swift-ts-mode dart-mode
                dart-ts-mode scala-mode scala-ts-mode zig-mode zig-ts-mode lua-mode lua-ts-mode
                (ess-r-mode :language-id "r") css-mode css-ts-mode scss-mode toml-mode toml-ts-mode sql-mode
                (nxml-mode :language-id "xml") terraform-mode dockerfile-mode dockerfile-ts-mode
                php-mode php-ts-mode
                html-mode
                (less-css-mode :language-id "less")
                (sh-mode :language-id "shellscript") (bash-mode :language-id "shellscript")
                (bash-ts-mode :language-id "shellscript")
                markdown-mode
                yaml-mode yaml-ts-mode
                ruby-mode ruby-ts-mode)
               . ,(lambda (&rest _) `(,@fim-server-command :initializationOptions ,fim-server-settings))))

;; To keep gopls, jdtls, rust-analyzer or typescript-language-server, remove their modes here and above.
(dolist (hook '(python-base-mode-hook go-mode-hook go-ts-mode-hook java-mode-hook java-ts-mode-hook
                rust-mode-hook rust-ts-mode-hook js-base-mode-hook typescript-mode-hook
                typescript-ts-base-mode-hook js-json-mode-hook c-mode-hook c-ts-mode-hook c++-mode-hook
                c++-ts-mode-hook csharp-mode-hook csharp-ts-mode-hook kotlin-mode-hook kotlin-ts-mode-hook
                swift-mode-hook swift-ts-mode-hook dart-mode-hook dart-ts-mode-hook scala-mode-hook
                scala-ts-mode-hook zig-mode-hook zig-ts-mode-hook lua-mode-hook lua-ts-mode-hook
                ess-r-mode-hook css-mode-hook css-ts-mode-hook scss-mode-hook toml-mode-hook toml-ts-mode-hook
                sql-mode-hook nxml-mode-hook terraform-mode-hook dockerfile-mode-hook dockerfile-ts-mode-hook
                php-mode-hook php-ts-mode-hook html-mode-hook less-css-mode-hook sh-mode-hook bash-mode-hook
                bash-ts-mode-hook markdown-mode-hook yaml-mode-hook yaml-ts-mode-hook
                ruby-mode-hook ruby-ts-mode-hook))
  (add-hook hook #'eglot-ensure))

(defun fim-server-explain ()
  "Show the text that may come at point."
  (interactive)
  (let ((explanation (jsonrpc-request (eglot-current-server) :workspace/executeCommand
                                      (list :command "fim-server.explainAt"
                                            :arguments (vector (list :uri (plist-get (eglot--TextDocumentIdentifier) :uri)
                                                            :position (eglot--pos-to-lsp-position)))))))
    (with-help-window "*fim-server*"
      (princ (format "Guarantee: %s\nShortest text that fits: %s\nAllowed next: %s\n"
                     (plist-get explanation :guarantee)
                     (plist-get explanation :shortest)
                     (string-join (plist-get explanation :expected) " "))))))

(provide 'fim-eglot)
;;; fim-eglot.el ends here
