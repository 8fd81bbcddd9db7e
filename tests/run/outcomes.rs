// SPDX-License-Identifier: MPL-2.0
//! Status files, exit statuses, and a run that continues another one.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

use crate::clips;
use crate::deaths::{slow, wait_for};
use crate::program::{SCRIPTED, files, marker, record, run, signal, status};

#[test]
fn a_run_is_not_repeated() {
    let folder = clips::videos(&[5, 7]);
    let folder = folder.path();
    let line = format!("in --out out {SCRIPTED}");
    run(folder, &line).exits(0);
    let names = [
        "clip0.json",
        "clip0.json.done",
        "clip1.json",
        "clip1.json.done",
    ];
    assert_eq!(files(&folder.join("out")), names);
    let first = marker(&folder.join("out/clip0.json"));
    assert_eq!(
        (&first["status"], &first["frames"]),
        (&"complete".into(), &5.into())
    );
    assert_eq!(
        (&first["attempts"], &first["faces"]),
        (&1.into(), &5.into())
    );
    assert!(first["seconds"].as_f64() > Some(0.0) && first["cpu_seconds"].as_f64() > Some(0.0));
    assert_eq!(first["video_seconds"], 0.2);

    let text = run(folder, &line).exits(0);
    assert!(text.contains("done                 2\n"), "{text}");
    assert!(text.contains("new                  0\n"), "{text}");
    assert_eq!(marker(&folder.join("out/clip0.json")), first);

    clips::video(&folder.join("in/clip0.mp4"), 6);
    let text = run(folder, &line).exits(0);
    assert!(text.contains("done                 2\n"), "{text}");
    assert!(text.contains("again (video changed)         1\n"), "{text}");
    assert_eq!(marker(&folder.join("out/clip0.json"))["frames"], 6);
    fs::remove_file(folder.join("out/clip1.json")).expect("a record");
    let text = run(folder, &format!("{line} --dry-run")).exits(0);
    let words: Vec<_> = text.lines().map(|line| line.split(" /").next()).collect();
    assert_eq!(words, [Some("complete  "), Some("again (was complete)")]);
    run(folder, &line).exits(0);
    assert_eq!(files(&folder.join("out")), names);
}

#[test]
fn other_settings_replace_records_only_if_that_is_asked_for() {
    let folder = clips::videos(&[5, 7]);
    let folder = folder.path();
    let line = format!("in --out out {SCRIPTED}");
    run(folder, &line).exits(0);
    let contents = || {
        let read = |name: &String| fs::read(folder.join("out").join(name)).expect("a file");
        files(&folder.join("out"))
            .iter()
            .map(read)
            .collect::<Vec<_>>()
    };
    let before = contents();
    clips::video(&folder.join("in/new.mp4"), 3);
    let other = format!("{line} --set max-age=3");
    for (line, code) in [(format!("{other} --dry-run"), 2), (other.clone(), 2)] {
        let text = run(folder, &line).exits(code);
        let refused = text.contains("2 videos would be tracked again");
        assert!(refused && text.contains("max-age=3 instead of "), "{text}");
        assert!(text.contains("Add --replace"), "{text}");
        let is_listed = text.contains("new        /") && text.contains("again (options: max-age=3");
        assert_eq!(is_listed, line.contains("--dry-run"), "{text}");
        assert_eq!(contents(), before);
    }
    let text = run(folder, &format!("{other} --replace")).exits(0);
    assert!(text.contains("done                 3\n"), "{text}");
    assert!(text.contains("new                  1\n"), "{text}");
    // A video of the same name in another folder.
    fs::create_dir(folder.join("other")).expect("a folder");
    clips::video(&folder.join("other/clip0.mp4"), 6);
    let text = run(
        folder,
        &format!("other --out out {SCRIPTED} --set max-age=3"),
    )
    .exits(2);
    assert!(text.contains("in/clip0.mp4"), "{text}");
    let text = run(folder, &format!("{other} --replace")).exits(0);
    assert!(text.contains("new                  0\n"), "{text}");
}

/// A video that is gone, or was replaced by a damaged one.
#[test]
fn a_good_result_is_kept_until_there_is_a_better_one() {
    let folder = clips::videos(&[20, 5]);
    let folder = folder.path();
    fs::write(folder.join("in/text.mp4"), "no video").expect("room");
    let list = "in/clip0.mp4\nin/clip1.mp4\nin/text.mp4\n";
    fs::write(folder.join("list.txt"), list).expect("room");
    let line = format!("list.txt --out out {SCRIPTED}");
    run(folder, &line).exits(1);
    let paths = ["clip0.json", "clip0.json.done", "text.json.done"];
    let paths = paths.map(|name| folder.join("out").join(name));
    let contents = || paths.each_ref().map(|path| fs::read(path).expect("a file"));
    let before = contents();
    fs::rename(folder.join("in"), folder.join("away")).expect("our own");
    fs::create_dir(folder.join("in")).expect("a folder");
    for line in [
        line.clone(),
        format!("{line} --checksum"),
        format!("{line} --retry-failed"),
    ] {
        let text = run(folder, &line).exits(1);
        assert!(text.contains("failed               3\n"), "{text}");
        let kept = text.matches("The record of an earlier run is kept");
        assert_eq!(kept.count(), 2, "{text}");
        assert_eq!(contents(), before);
    }
    run(folder, &format!("in --out out {SCRIPTED}")).exits(2);
    assert_eq!(contents(), before);
    fs::remove_dir(folder.join("in")).expect("our own");
    fs::rename(folder.join("away"), folder.join("in")).expect("our own");
    let text = run(folder, &line).exits(1);
    assert!(text.contains("new                  0\n"), "{text}");
    assert!(!text.contains("again"), "{text}");
    fs::write(folder.join("list.txt"), "in/clip0.mp4\nin/clip1.mp4\n").expect("room");

    let video = folder.join("in/clip0.mp4");
    let whole = fs::read(&video).expect("a video");
    for (share, word) in [(0.02, "failed"), (0.6, "truncated")] {
        fs::write(&video, &whole).expect("room");
        clips::cut(&video, share, &video);
        for tracked in [1, 0] {
            let text = run(folder, &line).exits(1);
            assert!(text.contains(&format!("{word:<12}         1\n")), "{text}");
            let again = format!("again (video changed)         {tracked}\n");
            assert_eq!(text.contains(&again), tracked == 1, "{text}");
        }
        assert_eq!(contents()[0], before[0]);
        let marker = marker(&paths[0]);
        assert_eq!(marker["status"], "complete");
        assert_eq!(marker["later"]["status"], word, "{marker}");
    }
    run(folder, &format!("{line} --force")).exits(1);
    assert_eq!(status(&paths[0]), "truncated");
    fs::write(&video, &whole).expect("room");
    run(folder, &line).exits(0);
    assert_eq!(status(&paths[0]), "complete");
    assert_eq!(contents()[0], before[0]);
}

#[test]
fn content_can_identify_a_video() {
    let folder = clips::videos(&[5]);
    let folder = folder.path();
    let line = format!("in --out out --checksum {SCRIPTED}");
    run(folder, &line).exits(0);
    let video = folder.join("in/clip0.mp4");
    let bytes = fs::read(&video).expect("a video");
    fs::write(&video, bytes).expect("room");
    let text = run(folder, &line).exits(0);
    assert!(text.contains("new                  0\n"), "{text}");
}

#[test]
fn a_record_of_another_program_is_kept() {
    let folder = clips::videos(&[5]);
    let folder = folder.path();
    let own = folder.join("in/clip0.json");
    fs::write(&own, "mine").expect("room");
    let line = format!("in/clip0.mp4 {SCRIPTED}");
    let text = run(folder, &line).exits(1);
    assert!(
        text.contains("skipped") && text.contains("--force"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(&own).expect("a file"), "mine");
    assert_eq!(
        files(folder),
        ["facetrack-failed.jsonl", "in/clip0.json", "in/clip0.mp4"]
    );
    run(folder, &format!("{line} --force")).exits(0);
    assert_eq!(record(&own)["metadata"]["total_frames"], 5);
    assert!(!folder.join("facetrack-failed.jsonl").exists());
}

/// The run was killed between the record and its status file.
#[test]
fn a_status_file_follows_its_record() {
    let folder = clips::videos(&[5]);
    let folder = folder.path();
    let line = format!("in {SCRIPTED}");
    run(folder, &line).exits(0);
    let before = marker(&folder.join("in/clip0.json"));
    fs::create_dir(folder.join("in/clip0.json.parts")).expect("a folder");
    let unfinished = |name: &str| folder.join("in/clip0.json.parts").join(name);
    let done = folder.join("in/clip0.json.done");
    fs::rename(done, unfinished("record.json.done")).expect("our own");
    fs::write(unfinished("claim"), "").expect("room");
    let text = run(folder, &line).exits(0);
    assert!(text.contains("new                  0\n"), "{text}");
    assert_eq!(marker(&folder.join("in/clip0.json")), before);
    let left = ["in/clip0.json", "in/clip0.json.done", "in/clip0.mp4"];
    assert_eq!(files(folder), left);
}

#[test]
fn wrong_usage_is_refused_before_anything_starts() {
    let folder = clips::videos(&[5]);
    let folder = folder.path();
    for (line, part) in [
        ("in missing.mp4", "missing.mp4: No such file"),
        (
            "in out/facetrack-failed.jsonl --retry-failed",
            "No such file",
        ),
        ("in --failures in/clip0.mp4", "not a list of failures"),
        (
            "in --failures in/clip0.json",
            "record or status file of a video",
        ),
        ("in/clip0.mp4 --engine dlib", "dlib"),
        ("in/clip0.mp4 --set max-faces=many", "max-faces=many"),
        ("in/clip0.mp4 --set eyes=2", "has a property `eyes`"),
        ("in/clip0.mp4 --set location=a.json", "--out"),
        ("in/clip0.mp4 --set blendshape-profile=some", "some"),
        ("in/clip0.mp4 --set max-faces", "name=value"),
        ("in/clip0.mp4 --shard 4/3", "4/3"),
        ("in/clip0.mp4 --timeout soon", "number"),
        ("missing.csv --jobs x", "x"),
        ("", "required"),
    ] {
        let text = run(folder, line).exits(2);
        assert!(text.contains(part), "{line}: {text}");
        assert!(!text.contains("CRITICAL"), "{line}: {text}");
        assert_eq!(files(folder), ["in/clip0.mp4"], "{line}");
    }
}

#[test]
fn a_list_of_failures_is_an_input() {
    let folder = clips::videos(&[5, 6]);
    let folder = folder.path();
    let line = "--out out --engine scripted";
    fs::create_dir(folder.join("in/deep")).expect("a folder");
    fs::rename(folder.join("in/clip1.mp4"), folder.join("in/deep/a.mp4")).expect("a video");
    fs::write(
        folder.join("list.csv"),
        "id,uri\nclip0,in/clip0.mp4\ndeep/a,in/deep/b.mp4\n",
    )
    .expect("room");
    run(folder, &format!("list.csv {line}")).exits(1);
    let failed = folder.join("out/facetrack-failed.jsonl");
    let text = fs::read_to_string(&failed).expect("a list");
    let row: Json = serde_json::from_str(&text).expect("one row");
    assert_eq!(
        (&row["id"], &row["status"]),
        (&"deep/a".into(), &"failed".into())
    );
    // Known as failed, until it is asked for.
    let again = "out/facetrack-failed.jsonl --failures more.jsonl";
    run(folder, &format!("{again} {line}")).exits(1);
    fs::rename(folder.join("in/deep/a.mp4"), folder.join("in/deep/b.mp4")).expect("a video");
    run(folder, &format!("{again} {line} --retry-failed")).exits(0);
    assert_eq!(status(&folder.join("out/deep/a.json")), "complete");
}

#[test]
fn a_list_that_lists_itself_is_no_video() {
    let folder = clips::videos(&[5]);
    let folder = folder.path();
    for (list, text, reason) in [
        ("a.json", r#"["in/clip0.mp4", "a.json"]"#, "would replace"),
        ("b.txt", "in/clip0.mp4\nb.txt\n", "not determine type"),
    ] {
        fs::write(folder.join(list), text).expect("room");
        let shown = run(folder, &format!("{list} {SCRIPTED}")).exits(1);
        assert!(shown.contains(reason), "{shown}");
        assert_eq!(status(&folder.join("in/clip0.json")), "complete");
        assert_eq!(fs::read_to_string(folder.join(list)).expect("a list"), text);
    }
}

#[test]
fn programs_read_events() {
    let folder = clips::videos(&[5]);
    let folder = folder.path();
    let text = run(folder, &format!("in --json {SCRIPTED}")).exits(0);
    let mut events: Vec<Json> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    // A slow machine has some.
    events.retain(|event| event["event"] != "progress");
    let kinds: Vec<_> = events.iter().map(|event| event["event"].as_str()).collect();
    assert_eq!(kinds, [Some("started"), Some("finished"), Some("summary")]);
    assert_eq!(events[1]["marker"]["frames"], 5);
    let figures = &events.last().expect("a summary")["figures"];
    assert_eq!(
        (&figures["done"], &figures["frames"]),
        (&1.into(), &5.into())
    );
}

#[test]
fn the_first_failure_can_end_a_run() {
    let folder = clips::videos(&[5]);
    let folder = folder.path();
    fs::write(folder.join("list.txt"), "missing.mp4\n").expect("room");
    let line = format!("list.txt in --out out --jobs 1 --fail-fast {SCRIPTED}");
    let text = run(folder, &line).exits(1);
    assert!(text.contains("not tracked: 1 video."), "{text}");
    assert!(!folder.join("out/clip0.json").exists());
}

/// SIGTERM, as schedulers send it.
#[test]
fn a_run_that_is_terminated_can_be_continued() {
    let folder = clips::videos(&[50]);
    let folder = folder.path();
    let slow = format!("in --json {SCRIPTED}");
    let mut child = run(folder, &slow)
        .arg("--set")
        .arg("script=face; slow ms=200")
        .start();
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut lines = output.lines().map_while(Result::ok);
    let under_way =
        lines.find(|line| line.contains("\"progress\"") && !line.contains("\"frames\":0"));
    assert!(under_way.is_some());
    signal("TERM", child.id());
    lines.for_each(drop);
    let ended = child.wait().expect("it ends");
    assert_eq!(ended.code(), Some(75));
    let partial = record(&folder.join("in/clip0.json.parts/record.json.partial"));
    assert!(!partial["frames"].as_array().expect("frames").is_empty());
    run(folder, &format!("in {SCRIPTED}")).exits(0);
    let left = ["in/clip0.json", "in/clip0.json.done", "in/clip0.mp4"];
    assert_eq!(files(folder), left);
}

/// The program that reads the events was killed.
#[test]
fn a_run_whose_events_nobody_reads_ends() {
    let folder = clips::videos(&[50]);
    let folder = folder.path();
    let line = format!("in --json {SCRIPTED}");
    let mut child = slow(run(folder, &line), 200).start();
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut lines = output.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("\"progress\"")));
    drop(lines);
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    assert!(!folder.join("in/clip0.json.done").exists());
}

#[test]
fn two_runs_share_a_folder() {
    let folder = clips::videos(&[5; 12]);
    let folder = folder.path();
    let line = format!("in --out out --jobs 1 {SCRIPTED}");
    let runs = [0, 1].map(|_| slow(run(folder, &line), 10).start());
    for child in runs {
        child.wait_with_output().expect("it ends");
    }
    for number in 0..12 {
        let record = folder.join(format!("out/clip{number}.json"));
        assert_eq!(status(&record), "complete", "{number}");
    }
    let text = slow(run(folder, &line), 10).exits(0);
    assert!(text.contains("done                12\n"), "{text}");
}

#[test]
fn a_record_that_another_program_writes_meanwhile_is_kept() {
    let folder = clips::videos(&[40]);
    let folder = folder.path();
    let own = folder.join("in/clip0.json");
    let line = format!("in --json --jobs 1 {SCRIPTED}");
    let mut child = slow(run(folder, &line), 30).start();
    assert!(wait_for(&mut child, r#""event":"progress","id":"clip0""#));
    fs::write(&own, "mine").expect("room");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    assert_eq!(fs::read_to_string(&own).expect("a file"), "mine");
    assert!(!folder.join("in/clip0.json.done").exists());
}

#[test]
fn the_list_of_failures_loses_no_video() {
    let folder = clips::videos(&[5]);
    let folder = folder.path();
    let list = folder.join("list.jsonl");
    let row = |path: &str| format!("{{\"uri\":\"{path}\",\"message\":\"\"}}\n");
    let rows = ["missing.mp4", "in/clip0.mp4"].map(row).concat();
    fs::write(&list, rows).expect("room");
    let line = format!("list.jsonl --failures list.jsonl --out out --jobs 1 {SCRIPTED}");
    run(folder, &format!("{line} --fail-fast")).exits(1);
    let text = fs::read_to_string(&list).expect("a list");
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(text.contains("it was not tracked"), "{text}");
    run(folder, &line).exits(1);
    let text = fs::read_to_string(&list).expect("a list");
    assert_eq!(text.lines().count(), 1, "{text}");
}

#[test]
fn a_list_of_failures_that_cannot_be_written_does_not_hide_the_results() {
    let folder = clips::videos(&[5]);
    let folder = folder.path();
    fs::write(folder.join("list.txt"), "missing.mp4\n").expect("room");
    let line = format!("list.txt in --failures no/list {SCRIPTED}");
    let text = run(folder, &line).exits(1);
    assert!(
        text.contains("no/list: ") && text.contains("done                 1\n"),
        "{text}"
    );
    let pipe = folder.join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo runs").success());
    run(folder, &format!("in --failures pipe {SCRIPTED}")).exits(0);
    assert!(pipe.exists());
    // Nobody reads it.
    let text = run(folder, &format!("list.txt --failures pipe {SCRIPTED}")).exits(1);
    assert!(text.contains("pipe: "), "{text}");
}

#[test]
fn shards_share_a_folder() {
    let folder = clips::videos(&[2; 9]);
    let folder = folder.path();
    let shard = |number: usize, variables: &[(&str, &str)]| {
        let option = if variables.is_empty() {
            format!("--shard {number}/3")
        } else {
            String::new()
        };
        let mut command = run(folder, &format!("in --out out {option} --json {SCRIPTED}"));
        for (name, value) in variables {
            command = command.env(name, value);
        }
        let text = command.exits(0);
        let lines = text.lines().filter(|line| line.contains("\"finished\""));
        lines.count()
    };
    let slurm = [
        ("SLURM_ARRAY_TASK_ID", "3"),
        ("SLURM_ARRAY_TASK_COUNT", "3"),
    ];
    let counts = [shard(1, &[]), shard(2, &[]), shard(3, &slurm)];
    assert_eq!(counts.iter().sum::<usize>(), 9, "{counts:?}");
    let records = files(&folder.join("out"));
    assert_eq!(
        records
            .iter()
            .filter(|name| name.ends_with(".json"))
            .count(),
        9
    );
    let text = run(folder, &format!("in --out out {SCRIPTED}")).exits(0);
    assert!(text.contains("done                 9\n"), "{text}");
}

/// The command line and the variables of an older pipeline.
#[test]
fn the_call_of_the_older_pipeline_works() {
    let folder = clips::videos(&[4, 5]);
    let folder = folder.path();
    let [first, second] = ["in/clip0.mp4", "in/clip1.mp4"].map(|name| folder.join(name));
    for (name, list) in [
        ("plain.json", format!("[{first:?}, {second:?}]")),
        (
            "videos.json",
            format!("{{\"videos\": [{first:?}, {second:?}]}}"),
        ),
    ] {
        fs::write(folder.join(name), list).expect("room");
        let line = format!(
            "--videos_json_path {name} --tracking_engine opencv_haar --cpu_internal_workers 15 --force"
        );
        let line = line.replace("opencv_haar", "scripted");
        let variables = |line: &str| {
            let run = run(folder, line).env("STEP5_EXPORT_VERBOSE_FIELDS", "1");
            run.env("STEP5_BLENDSHAPES_PROFILE", "none").exits(0)
        };
        variables(&line);
        let found = record(&folder.join("in/clip1.json"));
        assert_eq!(found["metadata"]["total_frames"], 5);
        assert_eq!(found["metadata"]["options"]["verbose"], true);
        assert_eq!(found["metadata"]["options"]["blendshape-profile"], "none");
        let tracker = &found["metadata"]["facetrack_options"];
        assert_eq!(tracker["tracker"], "centroid");
        assert_eq!(tracker["max-distance"], 80.0);
    }
    let line = format!("--videos_json_path plain.json {SCRIPTED}");
    let text = run(folder, &line).exits(2);
    assert!(
        text.contains("verbose=false instead of true"),
        "variables are a part of the key: {text}"
    );
    run(folder, &format!("{line} --replace")).exits(0);
    let engine = run(folder, "--videos_json_path plain.json --json")
        .env("STEP5_TRACKING_ENGINE", "scripted");
    assert!(engine.exits(0).contains("\"engine\":\"scripted\""));
    assert_eq!(
        files(folder)
            .iter()
            .filter(|name| name.ends_with(".done"))
            .count(),
        2
    );
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = clips::videos(&[4]);
    let folder = folder.path();
    fs::write(folder.join("out"), "a file").expect("room");
    let text = run(
        folder,
        &format!("in --out out --failures failed.jsonl {SCRIPTED}"),
    )
    .exits(1);
    let record = Path::new("out/clip0.json").display().to_string();
    assert!(
        text.contains(&record) && text.contains("cannot be written"),
        "{text}"
    );
}
