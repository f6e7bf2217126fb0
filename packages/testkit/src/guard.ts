/**
 * A shell script: runs a server as its child, tells its process id, and ends it when the test is gone: then the standard
 * input ends. The word "keep" says that the end is meant, and that the folder stays. Only the server holds the standard
 * output then, so that its end is seen.
 */
export const GUARD = `
"$@" 3>&1 >>"$IDMINT_FOLDER.log" 2>&1 </dev/null & server=$!
echo $server
exec >&-
read -r word
if [ "$word" != keep ]; then
  kill -KILL $server 2>/dev/null; wait $server; rm -rf "$IDMINT_FOLDER" "$IDMINT_FOLDER"[.-]*; exit
fi
wait $server`;
