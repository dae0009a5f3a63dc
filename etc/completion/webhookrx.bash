# Completion for bash of the options of "twistd webhookrx" and "twist webhookrx", and of the command "webhookrx": source
# it, or install it as /etc/bash_completion.d/webhookrx. Options that stand before the word webhookrx are twistd's, and
# completed as file names.

_webhookrx() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local limits="body header_block headers target connections connections_per_peer queue queue_messages
        header_time body_time answer_time idle_time pause_time"
    COMPREPLY=()
    [[ " ${COMP_WORDS[*]:0:COMP_CWORD} " == *" webhookrx "* ]] || return 0
    case $before in
        --source) COMPREPLY=($(compgen -W "webhook webhook-json" -- "$word")) ;;
        --ack) COMPREPLY=($(compgen -W "durable written queued" -- "$word")) ;;
        --on-parse-error) COMPREPLY=($(compgen -W "keep reject" -- "$word")) ;;
        --limit) COMPREPLY=($(compgen -S = -W "$limits" -- "$word")) ;;
        --tls-ca-dir) COMPREPLY=($(compgen -d -- "$word")) ;;
        --config | --auth-token-file | --tls-*-file) COMPREPLY=($(compgen -f -- "$word")) ;;
        --port | -p | --paths | --prefix | --auth-token | --proxy-header | --observer | -o | --admin | --drain-timeout | --workers) ;;
        *)
            COMPREPLY=($(compgen -W "--port --source --paths --prefix --on-parse-error --auth-token --auth-token-file
                --include-request-headers --proxy-header --tls-key-file --tls-cert-file --tls-peer-verify --tls-ca-file
                --tls-ca-dir --tls-use-system-cert-store --allow-plaintext-token --observer --ack --limit --drain-timeout
                --admin --workers --config --check --help --version" -- "$word"))
            ;;
    esac
}

_webhookrx_command() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} options=
    COMPREPLY=()
    case ${COMP_WORDS[2]-} in
        list) options="--help --json --waiting --limit" ;;
        show) options="--help --json" ;;
        replay) options="--help --json --all" ;;
        drop) options="--help --json --all --waiting" ;;
    esac
    case $COMP_CWORD in
        1) COMPREPLY=($(compgen -W "spool --help --version" -- "$word")) ;;
        2) COMPREPLY=($(compgen -W "list show replay drop --help" -- "$word")) ;;
        *)
            if [[ $word == -* ]]; then
                COMPREPLY=($(compgen -W "$options" -- "$word"))
            elif ((COMP_CWORD == 3)) || [[ $before == -* && $before != --limit ]]; then
                COMPREPLY=($(compgen -d -- "$word"))
            fi
            ;;
    esac
}

complete -o default -F _webhookrx twistd twist
complete -o filenames -F _webhookrx_command webhookrx
