#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What the tool says of itself, its man page and its completion agree: each
# command and option of --help is in both, and the pages have no mistakes in
# their markup. Each function of rmpool.h is exported and has a page, with the
# same prototype. Needs no module.
#
# Usage: cli_docs.sh TOOL SOURCE_FOLDER
set -u

tool=$1
source=$2
page=$source/docs/man/rmpool.1
passed=0
failed=0

check()
{
	local what=$1
	shift
	if "$@"; then
		((++passed))
	else
		((++failed))
		echo "FAILED: $what"
	fi
}

# The page as text: no markup, "\-" as "-".
plain=$(sed -e 's/\\f[BRI]//g; s/\\-/-/g' -e 's/^\.[A-Z]* //; s/"//g' "$page")
in_page() { grep -qE -e "$1" <<< "$plain"; }

# Completes the words given, the last of which is unfinished.
complete_words()
{
	COMP_WORDS=("$@")
	COMP_CWORD=$(($# - 1))
	_rmpool
	printf '%s\n' "${COMPREPLY[@]}"
}
compopt() { :; }
# The peers that completion asks for.
rmpool()
{
	printf 'PEER  ENDPOINT\nhost-b  v1:10.0.0.2:13579\n  rail 0\n'
}
# shellcheck source=/dev/null
source "$source/tools/completion/rmpool.bash"
offers() { complete_words "${@:2}" | grep -qxF -e "$1"; }

mapfile -t commands < <("$tool" --help | sed -n '/^Commands/,/^$/s/^  \([a-z]*\( [a-z]*\)\?\)  .*/\1/p')
check "the help lists all commands" [ ${#commands[@]} -ge 14 ]
for command in "${commands[@]}"; do
	read -ra words <<< "$command"
	first=${words[0]}
	second=${words[1]:-}
	check "$command is in the man page" in_page "^(SS )?rmpool ${first}.*${second}"
	check "$first is completed" offers "$first" rmpool "${first:0:2}"
	[[ -z $second ]] || check "$command is completed" offers "$second" rmpool "$first" ''
	mapfile -t options < <("$tool" "${words[@]}" --help | grep -oE '^ +(-., )?--[a-z-]+' | grep -oE -e '--[a-z-]+')
	check "$command has options" [ ${#options[@]} -ge 5 ]
	for option in "${options[@]}"; do
		check "$command $option is in the man page" in_page "$option"
		check "$command $option is completed" offers "$option" rmpool "${words[@]}" --
	done
done
check "peers are completed" offers host-b/ rmpool put file ''
check "the peers of get are completed" offers host-b/ rmpool get ho
check "all is a length" offers all rmpool get host-b/kv ''
check "operands after --file=x count right" offers host-b rmpool peer --timeout = 3 del ''
for page in "$source"/docs/man/*.[1347]; do
	check "$page is clean" [ -z "$(groff -t -man -Tutf8 -ww -z "$page" 2>&1)" ]
done

# Prototypes, one per line and without spaces: of the header, of the pages.
mapfile -t prototypes < <(tr '\n\t' '  ' <"$source/lib/include/rmpool.h" |
	sed 's|/\*[^*]*\*\+\([^/*][^*]*\*\+\)*/| |g' |
	grep -oE '(const char \*|const struct rmpool_error \*|int |void )rmpool_[a-z_]+\(([^()]|\([^()]*\))*\)' |
	tr -d ' ')
synopsis=$(sed -n '/^\.SH SYNOPSIS/,/^\.fi/{/#include/!s/^\.BI\? //p}' "$source"/docs/man/*.3 |
	tr -d '" \n' | sed 's/;/;\n/g')
exported=$(sed -n 's/^\t\(rmpool_[a-z_]*\);/\1/p' "$source/lib/librmpool.map")
check "the header has all functions" [ ${#prototypes[@]} -gt "$(wc -l <<<"$exported")" ]
for prototype in "${prototypes[@]}"; do
	function=$(sed -E 's/^(const(char|structrmpool_error)\*|int|void)(rmpool_[a-z_]+).*/\3/' <<<"$prototype")
	check "a page has $prototype" grep -qxF -e "$prototype;" <<<"$synopsis"
	[[ $function == rmpool_prepare_* ]] ||
		check "$function is exported" grep -qx "$function" <<<"$exported"
done

echo "cli_docs: $passed passed, $failed failed"
[ $failed -eq 0 ]
