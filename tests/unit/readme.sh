#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What the README says is so: the program in it is docs/examples/hello.c (which
# "make unit" compiles), its table of module parameters has exactly those of the
# module, with their defaults, its links lead to files, and the make targets that
# it names exist. "make help" lists all targets. Needs no module.
#
# Usage: readme.sh SOURCE_FOLDER
set -u
cd "$1" || exit 1
status=0

check()		# NAME COMMAND...
{
	local name=$1

	shift
	if "$@"; then
		echo "ok $name"
	else
		echo "not ok $name"
		status=1
	fi
}

# shellcheck disable=SC2317 # check calls it
same_lists()	# TWO TEXTS
{
	[ -n "$1" ] && diff <(echo "$1") <(echo "$2")
}

# Of the source: "name default", where the description tells a default as a number.
parameters=$(sed -nz 's/,\n[[:blank:]]*"/, "/g; p' kmod/*.c |
	sed -n 's/^MODULE_PARM_DESC(\([a-z_]*\), "\(.*\)");$/\1 \2/p' |
	sed -E 's/^([a-z_]+) .*(default |\()([0-9]+)[ :)].*/\1 \3/; s/^([a-z_]+) .*[^0-9 ].*/\1/' | sort)
# Of the README: "name default" or "name".
# shellcheck disable=SC2016 # the backquotes are those of Markdown
table=$(sed -n '/^## Module parameters/,/^## /s/^| `\([a-z_]*\)`\*\? |[^|]*| *\([^|]*[^ |]\) *|.*/\1 \2/p' README.md |
	sed -E '/ [0-9]+$/!s/ .*//' | sort)
check "module parameters" same_lists "$parameters" "$table"

changeable=$(grep -h '^module_param' kmod/*.c | sed -n 's/^[a-z_]*(\([a-z_]*\),.*0644);/\1/p' | sort)
# shellcheck disable=SC2016 # as above
starred=$(sed -n 's/^| `\([a-z_]*\)`\* |.*/\1/p' README.md | sort)
check "which of them can be changed" same_lists "$changeable" "$starred"

# shellcheck disable=SC2016 # as above
program=$(sed -n '/^```c$/,/^```$/p' README.md | sed '1d;$d')
check "the program is hello.c" same_lists "$(cat docs/examples/hello.c)" "$program"

missing=
for link in $(grep -o '](\([^)#]*\))' README.md docs/*.md | sed 's/:](/ /; s/)$//' |
	while read -r file target; do
		case $target in http*) continue ;; esac
		echo "$(dirname "$file")/$target"
	done); do
	[ -e "$link" ] || missing+=" $link"
done
check "links lead to files" [ -z "$missing" ]
[ -z "$missing" ] || echo "missing:$missing"

targets=$(grep -oE '(`|^)make( [a-z-]+)' README.md | sed 's/.* //' | sort -u)
for target in $targets; do
	check "make $target exists" grep -qE "^$target:|^$target .*:|^\.PHONY:.* $target( |$)" Makefile
done

# But for "module-if-possible" and files, which are nobody's business.
targets=$(sed -n '/^\.PHONY:/{:more; /\\$/{N; b more}; s/\\\n//g; s/^\.PHONY: *//p}' Makefile |
	tr -s ' \t' '\n' | grep -vE '^(\$|help$|module-if-possible$)' | sort -u)
# What stands before the descriptions.
listed=$(make -s help | sed -n 's/^  \([a-z]\)/\1/p' | sed 's/  .*//' | tr ' ' '\n' | sort -u)
check "make help lists all targets" same_lists "$targets" "$listed"
exit $status
