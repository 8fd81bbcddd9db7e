# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_facetrack_global_optspecs
    string join \n h/help V/version
end

function __fish_facetrack_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_facetrack_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_facetrack_using_subcommand
    set -l cmd (__fish_facetrack_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c facetrack -n "__fish_facetrack_needs_command" -s h -l help -d 'Print help'
complete -c facetrack -n "__fish_facetrack_needs_command" -s V -l version -d 'Print version'
complete -c facetrack -n "__fish_facetrack_needs_command" -f -a "fetch" -d 'Fetch models, ONNX Runtime and the sample clip; files already in place are only checked'
complete -c facetrack -n "__fish_facetrack_needs_command" -f -a "run" -d 'Track faces in videos, folders or lists of videos; a run that was interrupted continues'
complete -c facetrack -n "__fish_facetrack_needs_command" -f -a "export" -d 'Export a record as a table for other programs'
complete -c facetrack -n "__fish_facetrack_needs_command" -f -a "index" -d 'Write the results of many videos, and their faces, to Parquet files'
complete -c facetrack -n "__fish_facetrack_needs_command" -f -a "doctor" -d 'Say what is installed and what is missing; status 0 if the engine mediapipe can run'
complete -c facetrack -n "__fish_facetrack_needs_command" -f -a "env" -d 'Print the exports with which gst-launch-1.0 finds plugin, models and runtime, and a shell finds this command'
complete -c facetrack -n "__fish_facetrack_needs_command" -f -a "path" -d 'Print the path of a fetched file'
complete -c facetrack -n "__fish_facetrack_needs_command" -f -a "report" -d 'Sum up a tracking file that trackjsonsink wrote'
complete -c facetrack -n "__fish_facetrack_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c facetrack -n "__fish_facetrack_using_subcommand fetch" -l manifest -d 'Manifest to use instead of the built-in one' -r -F
complete -c facetrack -n "__fish_facetrack_using_subcommand fetch" -l to -d 'Folder to fetch into instead of the user\'s, such as /usr/local/share/facetrack for all users' -r -F
complete -c facetrack -n "__fish_facetrack_using_subcommand fetch" -s h -l help -d 'Print help'
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l out -d 'Folder for the records, in the tree of the input; by default each record is next to its video' -r -F
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l engine -d 'Engine; default: mediapipe' -r
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l set -d 'Property of facetrack or trackjsonsink, such as max-faces=2; may be repeated' -r
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l jobs -d 'Videos to track in parallel; 0 = one per core' -r
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l timeout -d 'Maximum time for a video, such as 90s, 10m or 2h' -r
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l max-memory -d 'Maximum memory of a worker, such as 800M or 2G' -r
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l segment -d 'Track long videos in parts of this length at the same time; MP4, MOV, Matroska and WebM' -r
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l warm-up -d 'Time to track before each part' -r
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l fetch -d 'Command that copies a video to a local file, such as \'rclone copyto {} {local}\'; videos need not be local then' -r
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l fetch-ahead -d 'Videos to fetch in advance' -r
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l shard -d 'Part of the videos to track: I/N, or N if a scheduler numbers its tasks (Slurm, Kubernetes, HyperQueue)' -r
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l failures -d 'File for the list of videos that are not complete' -r -F
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l videos_json_path -d 'List of videos, under the name of an older pipeline' -r -F
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l force -d 'Track every video again, and replace records that this command has not written'
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l retry-failed -d 'Try videos again that failed in an earlier run'
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l checksum -d 'Identify videos by their content instead of their size and time of change'
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l dry-run -d 'List what would be done, and do nothing'
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l fail-fast -d 'Stop at the first video that fails'
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -l json -d 'Print events as JSON, one per line'
complete -c facetrack -n "__fish_facetrack_using_subcommand run" -s h -l help -d 'Print help'
complete -c facetrack -n "__fish_facetrack_using_subcommand export" -l format -d 'Format to write' -r -f -a "csv\t'A row per face and frame'
parquet\t'The same as Parquet'
livelink-csv\t'A row per frame, as Epic\'s app Live Link Face records it'
openface-csv\t'A row per face and frame with the columns of OpenFace'"
complete -c facetrack -n "__fish_facetrack_using_subcommand export" -l out -d 'File to write' -r -F
complete -c facetrack -n "__fish_facetrack_using_subcommand export" -l faces -d 'Faces to export: all, largest, or ids such as obj_1,obj_3; default: all, and largest with livelink-csv' -r
complete -c facetrack -n "__fish_facetrack_using_subcommand export" -l fps -d 'Constant frame rate to interpolate the values at, in frames per second' -r
complete -c facetrack -n "__fish_facetrack_using_subcommand export" -l smooth -d 'Standard deviation of the Gaussian that smooths the values of each face over time, in seconds' -r
complete -c facetrack -n "__fish_facetrack_using_subcommand export" -l landmarks -d 'Add the landmarks (csv, parquet)'
complete -c facetrack -n "__fish_facetrack_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c facetrack -n "__fish_facetrack_using_subcommand index" -l to -d 'Parquet file to write, with a row per video' -r -F
complete -c facetrack -n "__fish_facetrack_using_subcommand index" -l faces -d 'Second Parquet file to write, with a row per face and frame of all records' -r -F
complete -c facetrack -n "__fish_facetrack_using_subcommand index" -l columns -d 'Further columns of the second file, such as blendshapes.jawOpen,pose.yaw' -r
complete -c facetrack -n "__fish_facetrack_using_subcommand index" -s h -l help -d 'Print help'
complete -c facetrack -n "__fish_facetrack_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c facetrack -n "__fish_facetrack_using_subcommand env" -s h -l help -d 'Print help'
complete -c facetrack -n "__fish_facetrack_using_subcommand path" -s h -l help -d 'Print help'
complete -c facetrack -n "__fish_facetrack_using_subcommand report" -l seconds -d 'Duration of the run, to report its speed' -r
complete -c facetrack -n "__fish_facetrack_using_subcommand report" -l blendshape -d 'Channel to draw over time' -r
complete -c facetrack -n "__fish_facetrack_using_subcommand report" -s h -l help -d 'Print help'
complete -c facetrack -n "__fish_facetrack_using_subcommand help; and not __fish_seen_subcommand_from fetch run export index doctor env path report help" -f -a "fetch" -d 'Fetch models, ONNX Runtime and the sample clip; files already in place are only checked'
complete -c facetrack -n "__fish_facetrack_using_subcommand help; and not __fish_seen_subcommand_from fetch run export index doctor env path report help" -f -a "run" -d 'Track faces in videos, folders or lists of videos; a run that was interrupted continues'
complete -c facetrack -n "__fish_facetrack_using_subcommand help; and not __fish_seen_subcommand_from fetch run export index doctor env path report help" -f -a "export" -d 'Export a record as a table for other programs'
complete -c facetrack -n "__fish_facetrack_using_subcommand help; and not __fish_seen_subcommand_from fetch run export index doctor env path report help" -f -a "index" -d 'Write the results of many videos, and their faces, to Parquet files'
complete -c facetrack -n "__fish_facetrack_using_subcommand help; and not __fish_seen_subcommand_from fetch run export index doctor env path report help" -f -a "doctor" -d 'Say what is installed and what is missing; status 0 if the engine mediapipe can run'
complete -c facetrack -n "__fish_facetrack_using_subcommand help; and not __fish_seen_subcommand_from fetch run export index doctor env path report help" -f -a "env" -d 'Print the exports with which gst-launch-1.0 finds plugin, models and runtime, and a shell finds this command'
complete -c facetrack -n "__fish_facetrack_using_subcommand help; and not __fish_seen_subcommand_from fetch run export index doctor env path report help" -f -a "path" -d 'Print the path of a fetched file'
complete -c facetrack -n "__fish_facetrack_using_subcommand help; and not __fish_seen_subcommand_from fetch run export index doctor env path report help" -f -a "report" -d 'Sum up a tracking file that trackjsonsink wrote'
complete -c facetrack -n "__fish_facetrack_using_subcommand help; and not __fish_seen_subcommand_from fetch run export index doctor env path report help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
