//! Powertools, in a process that is asked a line at a time.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use crate::{Language, PREFIX, TABLE};

/// The name of the Lambda function that uses Powertools.
pub(crate) const FUNCTION: &str = "orders-fn";

/// How many milliseconds an invocation has left when Powertools claims a key.
pub(crate) const LEASE: i64 = 30_000;

/// The settings of an idempotent function, for both sides.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// `None` is the default prefix of Powertools.
    pub(crate) prefix: Option<&'static str>,
    /// `None` hashes the whole payload.
    pub(crate) key: Option<&'static str>,
    pub(crate) validation: Option<&'static str>,
    pub(crate) hash: &'static str,
    /// How many seconds a completion counts.
    pub(crate) expires: u64,
    pub(crate) sort_key: Option<&'static str>,
    pub(crate) form: Form,
}

/// What Powertools makes idempotent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// Any function, with a payload.
    Function,
    /// The Lambda handler, with the whole event.
    Handler,
    /// The handler of each record of an SQS batch.
    Records,
    /// A method with the decorator (TypeScript).
    Method,
}

impl Settings {
    /// A function whose key this expression selects, with the defaults of Powertools and one prefix for all languages.
    pub(crate) fn by(key: &'static str) -> Self {
        Self { key: Some(key), ..Self::whole() }
    }

    /// As [`by`](Self::by), but with the whole payload as the key.
    pub(crate) fn whole() -> Self {
        Self {
            prefix: Some(PREFIX),
            key: None,
            validation: None,
            hash: "md5",
            expires: 3600,
            sort_key: None,
            form: Form::Function,
        }
    }
}

/// A call of a function, beside its settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    /// As JSON text, because numbers have to arrive as they are written.
    pub(crate) event: &'a str,
    pub(crate) result: &'a str,
    pub(crate) fails: bool,
}

impl<'a> Call<'a> {
    /// A call that does the work and returns `result`.
    pub(crate) const fn new(event: &'a str, result: &'a str) -> Self {
        Self { event, result, fails: false }
    }

    /// A call whose work fails.
    pub(crate) const fn failing(event: &'a str) -> Self {
        Self { fails: true, ..Self::new(event, "null") }
    }
}

pub(crate) struct Theirs {
    process: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Theirs {
    pub(crate) fn start(language: Language, endpoint: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let (scripts, venv) = (root.join("tests/powertools"), root.join("target/powertools-venv"));
        let (program, arguments, folder) = match language {
            Language::Python => {
                ("python", ["-c".into(), PathBuf::from("import app; app.serve()")], scripts)
            }
            Language::TypeScript => (
                "node",
                ["--no-warnings".into(), scripts.join("app.mjs")],
                root.join("target/powertools-node"),
            ),
        };
        let program = venv.join("bin").join(program);
        assert!(
            program.exists() && folder.exists(),
            "Powertools is not installed: there is no {} or no {}. `bash tests/run powertools` installs it.",
            program.display(),
            folder.display()
        );
        let mut process = Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .envs([("ENDPOINT", endpoint), ("AWS_LAMBDA_FUNCTION_NAME", FUNCTION)])
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let ask = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        Self { process, ask, answers }
    }

    /// Calls a function: how often its work was done, and its result or the name of its error.
    pub(crate) fn call(&mut self, settings: &Settings, call: Call<'_>) -> Value {
        self.say(&request(settings, call));
        self.answer()
    }

    /// Calls a function whose work does not end before [`go_on`](Self::go_on).
    pub(crate) fn begin(&mut self, settings: &Settings, call: Call<'_>) {
        let mut request = request(settings, call);
        request["holds"] = true.into();
        self.say(&request);
        assert_eq!(self.answer(), json!({ "holds": true }));
    }

    /// Ends the work that has begun; the answer of its call.
    pub(crate) fn go_on(&mut self) -> Value {
        self.say(&Value::Null);
        self.answer()
    }

    /// Kills the process, as Lambda does at the deadline.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn say(&mut self, request: &Value) {
        writeln!(self.ask, "{request}").unwrap();
    }

    fn answer(&mut self) -> Value {
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|_| panic!("it answered {answer:?}"))
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn request(settings: &Settings, call: Call<'_>) -> Value {
    let form = match settings.form {
        Form::Function => "function",
        Form::Handler => "handler",
        Form::Records => "records",
        Form::Method => "method",
    };
    let mut request = json!({
        "table": TABLE,
        "form": form,
        "hash": settings.hash,
        "expires": settings.expires,
        "event": call.event,
        "result": call.result,
        "fails": call.fails,
        "remaining": LEASE,
    });
    let optional = [
        ("prefix", settings.prefix),
        ("key", settings.key),
        ("validation", settings.validation),
        ("sort_key", settings.sort_key),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            request[name] = value.into();
        }
    }
    request
}

/// That the work was done, with this result.
pub(crate) fn executed(result: &str) -> Value {
    json!({ "executed": 1, "result": serde_json::from_str::<Value>(result).unwrap() })
}

/// That the work was not done, and the answer is this result of earlier work.
pub(crate) fn replayed(result: &str) -> Value {
    json!({ "executed": 0, "result": serde_json::from_str::<Value>(result).unwrap() })
}

/// That the work was not done, because of this error.
pub(crate) fn refused(error: &str) -> Value {
    json!({ "executed": 0, "error": error })
}
