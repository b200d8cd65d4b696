use crate::secrets::Scanner;
use std::fs;
use std::path::Path;

/// Return the texts of the secrets.
fn secrets(text: &str) -> Vec<&str> {
    Scanner::default().ranges(text).into_iter().map(|range| &text[range]).collect()
}

#[test]
fn a_string_assigned_to_a_name_of_a_secret_is_one() {
    for line in [
        "DB_PASSWORD = \"hunter2\"",
        "password='hunter2'",
        "connect(host, password=\"hunter2\", port=5)",
        "{\"user\": \"bob\", \"password\": \"hunter2\", \"port\": 5}",
        "config[\"db_password\"] = 'hunter2'",
        "API_KEY: str = \"hunter2\"",
        "const apiKey string = \"hunter2\"",
        "let client_secret: &'static str = \"hunter2\";",
        "private static final String ACCESS_TOKEN = \"hunter2\";",
        "STRIPE_KEY = \"hunter2\"",
        "self.token = \"hunter2\"",
        "os.environ[\"AWS_SECRET_ACCESS_KEY\"] = \"hunter2\"",
        "password = SecretStr(\"hunter2\")",
        "set_password(user, \"hunter2\")",
        "headers = {\"Authorization\": \"hunter2\"}",
        "request.header(\"X-Api-Key\", \"hunter2\")",
        "if password == \"hunter2\" {",
        "PASSWORDS = [\"hunter2\"]",
        "token = b\"hunter2\"",
        "password = `hunter2`",
        "DB_PASS = \"hunter2\"",
        "get(url, auth=(None, \"hunter2\"))",
        "#define PASSWORD \"hunter2\"",
        "sql.Open(name, \"root:hunter2@tcp(127.0.0.1)/db\")",
        "url = \"redis://:hunter2@localhost\"",
        "url = \"postgres://bob:hunter2@host/db\"",
        "dsn = \"Server=a;Password=hunter2;\"",
        "get(\"http://host/x?api_key=hunter2&y=1\")",
        "curl -H \"Authorization: Bearer hunter2\"",
    ] {
        let found = secrets(line);
        assert_eq!(found.len(), 1, "{line}: {found:?}");
        assert!(found[0].contains("hunter2"), "{line}: {found:?}");
    }
}

#[test]
fn a_secret_over_several_lines_is_left_out_whole() {
    let left = |text: &str| {
        let mut left = text.to_string();
        for range in Scanner::default().ranges(text).into_iter().rev() {
            left.replace_range(range, "");
        }
        left
    };
    let key =
        "K = \"\"\"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKC\nab+/c=\n-----END RSA PRIVATE KEY-----\"\"\"\nx = 1\n";
    assert_eq!(left(key), "K = \"\"\"\n\n\n\"\"\"\nx = 1\n");
    assert_eq!(left("password = (\n    \"hunter2\"\n)\nx = \"y\"\n"), "password = (\n    \"\"\n)\nx = \"y\"\n");
    assert_eq!(left("SECRET = \"\"\"\nhunter2\n\"\"\"\nx = \"y\"\n"), "SECRET = \"\"\"\n\n\"\"\"\nx = \"y\"\n");
    assert_eq!(left("TOKEN = \\\n    \"hunter2\"\nx = \"y\"\n"), "TOKEN = \\\n    \"\"\nx = \"y\"\n");
    assert_eq!(left("SECRETS = {\n    \"a\": \"b\",\n    \"c\": \"d\",\n}\nx = \"y\"\n").matches('b').count(), 0);
}

#[test]
fn random_strings_are_secrets_under_any_name() {
    for line in [
        "x = \"q8Zr3Vx9Lm2Tn7Bw4Kc6\"",
        "x = \"d41d8cd98f00b204e9800998ecf8427e\"",
        "x = \"550e8400-e29b-41d4-a716-446655440000\"",
        "x = \"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\"",
        "x = \"ghp_abcdefGHIJKL1234mnopQRST\"",
        "x = \"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc\"",
        "x = \"xkcdqwmzvbnplrtyhg\"",
        "x = \"Tr0ub4d&r!3xQ#9v$Lm\"",
        "# q8Zr3Vx9Lm2Tn7Bw4Kc6Yp5Hs",
    ] {
        assert_eq!(secrets(line).len(), 1, "{line}: {:?}", secrets(line));
    }
}

#[test]
fn ordinary_strings_are_not_secrets() {
    for line in [
        "name = \"hunter2\"",
        "to = \"mailto:bob@example.com\"",
        "Password string `json:\"password\"`",
        "remote = \"git@example.com:a/b.git\"",
        "fields = [\"username\", \"password\", \"email\"]",
        "password = os.environ[\"DB_PASSWORD\"]",
        "token = os.Getenv(\"API_TOKEN\")",
        "password = CharField(label=\"Your words\", max_length=20)",
        "sort_key = \"created_at\"",
        "for row in rows: print(\"a\", row)",
        "fn parse<'a>(text: &'a str) -> &'a str { \"b\" }",
        "raise ValueError(\"Enter a password: \")",
        "x = \"test_user_can_log_in_twice_with_sha256\"",
        "x = \"application/vnd.api+json; charset=utf-8\"",
        "x = \"abcdefghijklmnopqrstuvwxyz0123456789\"",
        "x = \"https://example.com/a/b?c=d\"",
        "ALPHABET = \"0123456789abcdef\"",
        "assertEqualsIgnoringCaseAndWhitespace(one, two)",
        "x = \"^[A-Z][a-z]+([0-9]+)?$\"",
    ] {
        assert_eq!(secrets(line), Vec::<&str>::new(), "{line}");
    }
}

/// Cases with one secret each in guillemets, shared with the tests in Python.
fn cases() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases/secrets.txt");
    let text = fs::read_to_string(path).expect("the cases");
    text.lines().map(|line| line.replace("\\n", "\n").replace("\\t", "\t")).collect()
}

#[test]
fn the_secret_of_each_case_is_left_out_whole() {
    let mut leaks = Vec::new();
    for case in cases() {
        let (before, rest) = case.split_once('«').expect("a secret");
        let (secret, after) = rest.split_once('»').expect("its end");
        let text = format!("first = other\n{before}{secret}{after}\nlast = one\n");
        let start = text.len() - after.len() - secret.len() - "\nlast = one\n".len();
        let found = Scanner::default().ranges(&text);
        if !found.iter().any(|range| range.start <= start && start + secret.len() <= range.end) {
            leaks.push(case);
        }
    }
    assert_eq!(leaks, Vec::<String>::new());
}

#[test]
fn a_line_after_a_record_is_kept() {
    let text = "{\"name\": \"password\", \"value\": \"hunter2\"},\n{\"name\": \"title\", \"value\": \"page\"}\n";
    assert_eq!(secrets(text), ["hunter2"]);
    assert_eq!(secrets("names = [\"password\"]\nx = \"y of z\"\n"), Vec::<&str>::new());
    assert_eq!(secrets("f(\"password\")\ng(\"some words\")\n"), Vec::<&str>::new());
}
