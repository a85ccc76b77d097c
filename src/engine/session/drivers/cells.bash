# Runs cells in bash: reads the path of each from descriptor 3, and answers there when it has ended. The
# shell itself runs them, at its top level, so that variables, functions and folder stay. It is
# interactive, so that an interrupt ends the cell and returns here, and does not end the shell. This
# script runs before its first prompt, so the shell never reads its stdin; descriptor 4 is its stderr.
__glovebox_code=$?
if [ -z "${__glovebox_begun+x}" ]; then
    export -n PROMPT_COMMAND
    unset HISTFILE
    PS1= PS2= __glovebox_begun=
    exec 2>&4 4>&-
elif [ -n "$__glovebox_path" ]; then
    printf 'X %d\n' "$__glovebox_code" >&3
fi
__glovebox_path=
while IFS= read -r -u 3 __glovebox_path; do
    source "$__glovebox_path" 3>&-
    printf 'X %d\n' "$?" >&3
    __glovebox_path=
done
exit 0
