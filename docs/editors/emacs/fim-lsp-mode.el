;;; fim-lsp-mode.el --- fim-server in Emacs with lsp-mode  -*- lexical-binding: t; -*-

;; lsp-mode 10 or newer, for inline completion.  In init.el: (load "/path/to/fim-lsp-mode.el").
;; It runs beside other servers of the buffer, such as pyright or gopls.  C-RET accepts a visible suggestion, C-n and C-p show
;; the next and the previous one, C-g dismisses it; any other key dismisses it and types.

;;; Code:

(require 'lsp-mode)
(require 'lsp-inline-completion)

(defgroup fim-server nil "Suggestions that always parse." :group 'lsp-mode)

(defcustom fim-server-command '("fim-server" "serve")
  "The server and its arguments."
  :type '(repeat string))

(defcustom fim-server-settings nil
  "The server's settings as an alist, as in docs/protocol.md: ((deadlineMs . 800))."
  :type 'alist)

(defvar fim-server-status ""
  "State of the server for the mode line.")
(put 'fim-server-status 'risky-local-variable t)

(defun fim-server--take-status (_workspace params)
  "Keep the status PARAMS for the mode line."
  (let ((state (lsp-get params :state)))
    (setq fim-server-status
          (concat " fim:" (if (equal state "error") (lsp-get params :message) state)))
    (force-mode-line-update t)))

(lsp-register-client
 (make-lsp-client
  :server-id 'fim-server
  :new-connection (lsp-stdio-connection (lambda () fim-server-command))
  :activation-fn (lsp-activate-on "python" "go" "java" "rust" "javascript" "javascriptreact" "typescript"
                                  "typescriptreact" "json" "html" "vue" "svelte" "astro" "c" "cpp" "csharp" "kotlin"
                                  "swift" "dart" "scala" "zig" "lua" "r" "css" "scss" "toml" "sql" "xml" "terraform"
                                  "dockerfile" "php" "less" "shellscript" "markdown" "yaml" "ruby")
  :add-on? t
  :multi-root t
  :initialization-options (lambda () (or fim-server-settings (make-hash-table)))
  :notification-handlers (lsp-ht ("fim-server/status" #'fim-server--take-status))))

;; lsp-mode 10.0 announces inline completion as null, which means none.  fim-server would then also fill the completion
;; list.
(defun fim-server--announce (capabilities)
  "CAPABILITIES with inline completion."
  (let ((capabilities (copy-tree capabilities)))
    (setf (alist-get 'inlineCompletion (alist-get 'textDocument capabilities)) '((dynamicRegistration . :json-false)))
    capabilities))
(advice-add 'lsp--client-capabilities :filter-return #'fim-server--announce)

(defun fim-server-explain ()
  "Show the text that may come at point, and the model's next tokens."
  (interactive)
  (let* ((argument (list :uri (lsp--buffer-uri) :position (lsp--cur-position)))
         (explanation (lsp-request "workspace/executeCommand"
                                   (list :command "fim-server.explainAt" :arguments (vector argument)))))
    (with-help-window "*fim-server*"
      (princ (format "Guarantee: %s\nShortest text that fits: %s\nAllowed next: %s\n\nNext tokens of the model:\n"
                     (lsp-get explanation :guarantee)
                     (lsp-get explanation :shortest)
                     (string-join (lsp-get explanation :expected) " ")))
      (seq-doseq (candidate (lsp-get explanation :candidates))
        (princ (format "%3.0f %%  %S%s\n"
                       (* 100 (lsp-get candidate :probability))
                       (lsp-get candidate :text)
                       (if (eq t (lsp-get candidate :allowed)) "" (concat "  " (lsp-get candidate :reason)))))))))

(setq lsp-inline-completion-idle-delay 0.2)
(add-to-list 'mode-line-misc-info '(lsp-mode fim-server-status))
(dolist (hook '(python-base-mode-hook go-mode-hook go-ts-mode-hook java-mode-hook java-ts-mode-hook
                rust-mode-hook rust-ts-mode-hook js-base-mode-hook typescript-mode-hook
                typescript-ts-base-mode-hook js-json-mode-hook html-mode-hook vue-mode-hook svelte-mode-hook
                astro-ts-mode-hook c-mode-hook c-ts-mode-hook c++-mode-hook c++-ts-mode-hook csharp-mode-hook
                csharp-ts-mode-hook kotlin-mode-hook kotlin-ts-mode-hook swift-mode-hook swift-ts-mode-hook
                dart-mode-hook dart-ts-mode-hook scala-mode-hook scala-ts-mode-hook zig-mode-hook
                zig-ts-mode-hook lua-mode-hook lua-ts-mode-hook ess-r-mode-hook css-mode-hook css-ts-mode-hook
                scss-mode-hook toml-mode-hook toml-ts-mode-hook sql-mode-hook nxml-mode-hook
                terraform-mode-hook dockerfile-mode-hook dockerfile-ts-mode-hook php-mode-hook
                php-ts-mode-hook less-css-mode-hook sh-mode-hook bash-mode-hook bash-ts-mode-hook
                markdown-mode-hook yaml-mode-hook yaml-ts-mode-hook ruby-mode-hook
                ruby-ts-mode-hook))
  (add-hook hook #'lsp-deferred))

(provide 'fim-lsp-mode)
;;; fim-lsp-mode.el ends here
