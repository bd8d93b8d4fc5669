# SPDX-License-Identifier: MIT
#
# bash completion of rmpool(1): commands, options, peers of the table, and the
# operands that are files. Peers need the module; without it there are none.

_rmpool_peers()
{
	rmpool -q peer list 2>/dev/null | awk 'NR > 1 && /^[^ ]/ { print $1 }'
}

_rmpool()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
	local common='--json --quiet --timeout --help --version'
	local first='' second='' operands=0 skip=0 i word options

	COMPREPLY=()
	# A value after an option that takes one.
	case $prev in
	--file | --save | -f)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
		;;
	--allow | -a)
		mapfile -t COMPREPLY < <(compgen -W "$(_rmpool_peers)" -- "$cur")
		return
		;;
	--timeout | --size | --offset | --group | -t | -s | -o | -g)
		return
		;;
	esac

	for ((i = 1; i < COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		# bash divides --file=NAME into three words.
		if [[ $word == = ]]; then
			skip=1
			continue
		fi
		if ((skip)); then
			skip=0
			continue
		fi
		case $word in
		--file | --save | --timeout | --size | --offset | --allow | --group | -f | -t | -s | -o | -a | -g) skip=1 ;;
		-?*) ;;
		*)
			if [[ -z $first ]]; then
				first=$word
			elif [[ -z $second && $first =~ ^(node|peer|segment|region)$ ]]; then
				second=$word
			else
				((++operands))
			fi
			;;
		esac
	done

	if [[ $cur == -* ]]; then
		options=$common
		case $first${second:+ $second} in
		serve) options+=' --size --file --offset --read-only --allow --save' ;;
		'node set') options+=' --allow-loopback' ;;
		'peer add') options+=' --allow-loopback --group' ;;
		esac
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
		return
	fi

	case $first${second:+ $second} in
	'') word='info device node peer segment region serve put get monitor version help' ;;
	node) word='show set' ;;
	peer) word='list add del' ;;
	segment | region) word='list' ;;
	'node set')
		compopt -o nospace
		word='name= listen= advertise= accept=table accept=any'
		;;
	'peer del') ((operands == 0)) && word=$(_rmpool_peers) || word='' ;;
	put)
		word=''
		if ((operands == 0)); then
			compopt -o filenames
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			return
		elif ((operands == 1)); then
			compopt -o nospace
			word=$(_rmpool_peers | sed 's|$|/|')
		fi
		;;
	get)
		word=''
		if ((operands == 0)); then
			compopt -o nospace
			word=$(_rmpool_peers | sed 's|$|/|')
		elif ((operands == 1)); then
			word='all'
		elif ((operands == 2)); then
			compopt -o filenames
			mapfile -t COMPREPLY < <(compgen -f -- "$cur")
			return
		fi
		;;
	*) word='' ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$word" -- "$cur")
}

complete -F _rmpool rmpool
