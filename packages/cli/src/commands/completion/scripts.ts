// The scripts that shells load. They know nothing of the commands: with each Tab they ask this program.

/** Shells that are known. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

export type Shell = (typeof SHELLS)[number];

// bash splits words at ":" and "=" too, and replaces only what follows the last of them. So the words are put together
// again, and what stands before the split is cut off the answers. It works with bash 3.2, which macOS has.
const BASH = String.raw`# Completion of idmint for bash. Load it with: source <(idmint completion bash)
_idmint() {
  local rest="\${COMP_LINE#*"\${COMP_WORDS[0]}"}" words=() word i last kind="" answer
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    if [[ \${#words[@]} -gt 0 && $rest != [[:space:]]* ]]; then
      last=$((\${#words[@]} - 1))
      words[last]="\${words[last]}$word"
    else
      words+=("$word")
    fi
    rest="\${rest#*"$word"}"
  done
  last="\${words[\${#words[@]} - 1]}"
  word="\${COMP_WORDS[COMP_CWORD]}"
  case "$word" in : | =) word="" ;; esac
  last="\${last%"$word"}"
  COMPREPLY=()
  while IFS= read -r answer; do
    if [[ -z $kind ]]; then kind="$answer"; else COMPREPLY+=("\${answer#"$last"}"); fi
  done < <("\${1/#\~/$HOME}" completion bash -- "\${words[@]}" 2>/dev/null)
  if [[ $kind == files ]]; then compopt -o default 2>/dev/null; fi
}
complete -F _idmint idmint
`;

const ZSH = String.raw`#compdef idmint
# Completion of idmint for zsh. Load it after compinit with: source <(idmint completion zsh)
_idmint() {
  local -a answer
  answer=("\${(@f)$("\${words[1]/#\~/$HOME}" completion zsh -- "\${(@Q)words[2,CURRENT-1]}" "\${(Q)PREFIX}" 2>/dev/null)}")
  if [[ $answer[1] == files ]]; then
    compset -P '--[a-z-]#='
    _files
    return
  fi
  shift answer
  (($#answer)) || return 1
  _describe idmint answer
}
compdef _idmint idmint
`;

const FISH = String.raw`# Completion of idmint for fish. Load it with: idmint completion fish | source
function __idmint_complete
  set -l words (commandline -opc)
  set -l current (commandline -ct)
  set -l program $words[1]
  set -e words[1]
  set -l answer ($program completion fish -- $words "$current" 2>/dev/null)
  if test "$answer[1]" = files
    __fish_complete_path (string replace -r '^--[a-z-]+=' '' -- "$current")
  else
    set -e answer[1]
    printf '%s\n' $answer
  end
end
complete -c idmint -f -a '(__idmint_complete)'
`;

/** What a shell loads. */
export const SCRIPTS: Readonly<Record<Shell, string>> = {
  bash: BASH.replaceAll(String.raw`\${`, "${"),
  zsh: ZSH.replaceAll(String.raw`\${`, "${"),
  fish: FISH,
};
