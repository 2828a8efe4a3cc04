# status.sh JOB: prints running, success or failed. Replace Slurm's query with your scheduler's.
# If the scheduler does not answer for a moment, the job counts as running.

# Slurm lists a job for MinJobAge seconds after its end (five minutes by default).
if state=$(squeue --noheader --states=all --format=%T --jobs="$1" 2>&1); then
  case $state in
    COMPLETED) echo success ;;
    PENDING | CONFIGURING | RUNNING | COMPLETING | STOPPED | SUSPENDED | REQUEUE* | RESIZING | SIGNALING | STAGE_OUT) echo running ;;
    *) echo failed ;;
  esac
else
  case $?:$state in
    127:*) echo "$state" >&2 && exit 1 ;; # no squeue here: the run would wait forever
    *"Invalid job id"*) echo failed ;;
    *) echo running ;;
  esac
fi

# PBS: qstat -x -f "$1": job_state = F is its end, Exit_status = 0 success.
# LSF: bjobs -noheader -o stat "$1": DONE is success, EXIT failed.
# SGE: qstat -j "$1" succeeds while it runs; after that qacct -j "$1": exit_status 0 and failed 0 is success.
