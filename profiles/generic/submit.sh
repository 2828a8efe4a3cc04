# submit.sh THREADS MEGABYTES MINUTES GPUS SCRIPT: submits SCRIPT and prints only the job's id.
# Replace Slurm's line with your scheduler's, with your queue and account. Only Slurm's has been tested.
set -eu
threads=$1 megabytes=$2 minutes=$3 gpus=$4 script=$5
logs=results/logs/cluster # the scheduler's own logs; each step's is in <results>/logs
mkdir -p "$logs"

# Slurm
exec sbatch --parsable --job-name=compclip --output="$logs/%j.log" --nodes=1 --cpus-per-task="$threads" --mem="${megabytes}M" \
  --time="$minutes" $(test "$gpus" -eq 0 || echo "--gpus=$gpus") "$script"

# PBS; in status.sh qstat
# exec qsub -N compclip -V -j oe -o "$logs" -l "select=1:ncpus=$threads:mem=${megabytes}mb:ngpus=$gpus" \
#   -l "walltime=$((minutes / 60)):$((minutes % 60)):00" "$script"

# LSF; in status.sh bjobs
# bsub -J compclip -o "$logs/%J.log" -n "$threads" -R "span[hosts=1]" -M "${megabytes}MB" -W "$minutes" \
#   $(test "$gpus" -eq 0 || echo "-gpu num=$gpus") "sh $script" | sed 's/[^<]*<\([0-9]*\)>.*/\1/'

# SGE; in status.sh qstat and qacct. Its memory is for each thread.
# exec qsub -terse -N compclip -V -j y -o "$logs" -pe smp "$threads" -l "h_vmem=$((megabytes / threads))M" \
#   -l "h_rt=$((minutes * 60))" "$script"
