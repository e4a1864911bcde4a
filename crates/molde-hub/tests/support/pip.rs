//! A Python that knows one command, `-m pip download`, and has its wheels in a folder.

use std::io::{Cursor, Write as _};
use std::path::{Path, PathBuf};

use zip::write::SimpleFileOptions;

use super::sha256;

/// A fake Python with its wheels. What it does is said by files in its folder: `fail` (exit with
/// its content on standard error), `slow` (write half of the wheel, then wait), `empty` (succeed
/// without a wheel).
pub struct FakePython {
    pub folder: PathBuf,
    pub command: PathBuf,
}

const SCRIPT: &str = r#"#!/bin/sh
here=$(dirname "$0")
if [ "$1 $2 $3" != "-m pip download" ]; then echo "unexpected: $*" >&2; exit 9; fi
echo "$*" >> "$here/calls"
echo $$ >> "$here/pids"
echo "noise on standard output"
while [ $# -gt 1 ]; do
  if [ "$1" = "--dest" ]; then dest=$2; fi
  shift
done
name=$(echo "$1" | sed -e 's/-/_/g' -e 's/==/-/')
wheel="$name-py3-none-any.whl"
if [ -f "$here/fail" ]; then cat "$here/fail" >&2; exit 1; fi
if [ -f "$here/empty" ]; then exit 0; fi
if [ ! -f "$here/$wheel" ]; then echo "ERROR: No matching distribution found for $1" >&2; exit 1; fi
if [ -f "$here/slow" ]; then
  size=$(wc -c < "$here/$wheel")
  head -c $((size / 2)) "$here/$wheel" > "$TMPDIR/$wheel"
  exec sleep 30
fi
cp "$here/$wheel" "$dest/$wheel"
"#;

impl FakePython {
    pub fn new(folder: &Path) -> Self {
        let folder = folder.join("python");
        std::fs::create_dir_all(&folder).expect("a folder");
        let command = folder.join("python3");
        // Written by a child: a script that this process has just held open for writing cannot be
        // started while another thread's fork still has the descriptor.
        let mut cat = std::process::Command::new("sh")
            .args(["-c", "cat > \"$0\" && chmod +x \"$0\""])
            .arg(&command)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("sh");
        cat.stdin.take().expect("piped").write_all(SCRIPT.as_bytes()).expect("written");
        assert!(cat.wait().expect("sh ends").success());
        Self { folder, command }
    }

    /// Adds the wheel of `tiny-part{number}==1.0` with this piece.
    pub fn add(&self, number: usize, piece: &[u8]) {
        self.add_as(number, &member(number), piece);
    }

    pub fn add_as(&self, number: usize, member: &str, piece: &[u8]) {
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default();
        for (name, content) in
            [("tiny/__init__.py", b"raise SystemExit(1)".as_slice()), (member, piece)]
        {
            zip.start_file(name, options).expect("a member");
            zip.write_all(content).expect("written");
        }
        let bytes = zip.finish().expect("an archive").into_inner();
        std::fs::write(self.wheel(number), bytes).expect("a wheel");
    }

    pub fn wheel(&self, number: usize) -> PathBuf {
        self.folder.join(format!("tiny_part{number}-1.0-py3-none-any.whl"))
    }

    pub fn say(&self, what: &str, content: &str) {
        std::fs::write(self.folder.join(what), content).expect("written");
    }

    pub fn unsay(&self, what: &str) {
        std::fs::remove_file(self.folder.join(what)).expect("it was said");
    }

    /// The requirements that were asked for, in order.
    pub fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.join("calls")).unwrap_or_default();
        text.lines().filter_map(|line| line.split(' ').next_back()).map(str::to_owned).collect()
    }

    /// The process ids of the runs, in order.
    pub fn pids(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.folder.join("pids")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

pub fn member(number: usize) -> String {
    format!("tiny/data/part{number:02}.bin")
}

/// The mirror source for pieces, to be appended to a catalogue.
pub fn mirror_source(pieces: &[&[u8]]) -> String {
    let mut text = format!("[[model.sources]]\nkind = \"mirror\"\nfile = \"{}\"\n", super::FILE);
    for (index, piece) in pieces.iter().enumerate() {
        let number = index + 1;
        let entry = format!(
            "[[model.sources.pieces]]\npackage = \"tiny-part{number}\"\nversion = \"1.0\"\n\
             wheel_bytes = {size}\nmember = \"{}\"\nsize_bytes = {size}\nsha256 = \"{}\"\n",
            member(number),
            sha256(piece),
            size = piece.len(),
        );
        text.push_str(&entry);
    }
    text
}
