# Completion for bash of the options of "twistd webhookrx" and "twist webhookrx", and of the command "webhookrx": source
# it, or install it as /etc/bash_completion.d/webhookrx. Options that stand before the word webhookrx are twistd's, and
# completed as file names.

_webhookrx() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local limits="body unpack_ratio header_block headers target connections connections_per_peer queue queue_messages
        header_time body_time answer_time idle_time pause_time recorded_requests recorded_bytes"
    COMPREPLY=()
    [[ " ${COMP_WORDS[*]:0:COMP_CWORD} " == *" webhookrx "* ]] || return 0
    case $before in
        --source) COMPREPLY=($(compgen -W "webhook webhook-json" -- "$word")) ;;
        --ack) COMPREPLY=($(compgen -W "durable written queued" -- "$word")) ;;
        --on-parse-error) COMPREPLY=($(compgen -W "keep reject" -- "$word")) ;;
        --keep-message) COMPREPLY=($(compgen -W "yes unparsed" -- "$word")) ;;
        --verify) COMPREPLY=($(compgen -W "required note off" -- "$word")) ;;
        --handshake) COMPREPLY=($(compgen -W "yes no" -- "$word")) ;;
        --limit) COMPREPLY=($(compgen -S = -W "$limits" -- "$word")) ;;
        --tls-ca-dir | --console-dir | --key-directory | --data-directory | --senders | --state-dir | --record) COMPREPLY=($(compgen -d -- "$word")) ;;
        --config | --console-token-file | --control | --rules | --auth-token-file | --secrets-file | --signing-certs | --tls-*-file) COMPREPLY=($(compgen -f -- "$word")) ;;
        --port | -p | --paths | --health | --prefix | --auth-token | --proxy-header | --observer | -o | --admin | --drain-timeout | --workers | --router-name | --router-label | --console) ;;
        --auth-token-in | --sender | --split | --idempotency | --quota | --allow | --allow-client | --public-url | --sender-setting | --network) ;;
        *)
            COMPREPLY=($(compgen -W "--port --source --paths --health --allow-slow-patterns --prefix --on-parse-error --keep-message --auth-token --auth-token-file
                --include-request-headers --proxy-header --tls-key-file --tls-cert-file --tls-peer-verify --tls-ca-file
                --tls-ca-dir --tls-use-system-cert-store --auth-token-in --sender --secrets-file --verify --handshake
                --split --idempotency --quota --allow --allow-client --public-url --sender-setting --allow-plaintext-token --observer --ack --limit --drain-timeout
                --admin --workers --rules --router-name --router-label --console --console-dir --console-token-file --key-directory --data-directory --no-console-tap
                --senders --network --signing-certs --fetch-keys --control --state-dir --record --config --check --help --version" -- "$word"))
            ;;
    esac
}

_webhookrx_command() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verbs= options= files=-f
    COMPREPLY=()
    # Those of a receiver.
    case ${COMP_WORDS[1]-}/$((COMP_CWORD > 2)) in
        run/* | -*/* | config/1)
            ((COMP_CWORD == 1)) || { _webhookrx; return; }
            ;;
    esac
    case ${COMP_WORDS[1]-} in
        config) verbs="check" ;;
        import) verbs="collector" ;;
        spool) verbs="list show replay drop" files=-d ;;
        rules) verbs="check preview explain pull diff push" ;;
        query) verbs="check" files= ;;
        routers) verbs="list show" files= ;;
        console) verbs="init user backup restore adopt" ;;
        relay | tap | status | enrol) files= ;;
    esac
    case ${COMP_WORDS[1]-}${verbs:+ ${COMP_WORDS[2]-}} in
        "spool list") options="--help --json --waiting --limit" ;;
        "spool show") options="--help --json" ;;
        "spool replay") options="--help --json --all" ;;
        "spool drop") options="--help --json --all --waiting" ;;
        "rules check") options="--help --json --files --senders --strict --allow-slow-patterns --router --router-label --elsewhere" ;;
        "rules preview") options="--help --json --selector --rule --all" ;;
        "rules explain") options="--help --json --router --router-label --elsewhere" ;;
        "rules pull") options="--help --console --token-file --ca" ;;
        "rules diff") options="--help --console --token-file --ca --manager --prune --take-over --json" ;;
        "rules push") options="--help --console --token-file --ca --manager --prune --take-over --json --dry-run --note" ;;
        "query check") options="--help --json" ;;
        "try") options="--help --json --config --rules --router --router-label --elsewhere --source --rule --port --path --at --peer --client-cert --sign --curl --senders --allow-slow-patterns" ;;
        "import collector") options="--help" ;;
        "relay") options="--help --from --to --group --dead --ack --admin --drain-timeout --pidfile --umask --check" ;;
        "tap") options="--help --control --console --token-file --ca --routers --source --connector --point --filter --rate --for --json" ;;
        "status") options="--help --control --json" ;;
        "enrol") options="--help --console --token-file --console-dir --name --label --forget" ;;
        "routers list") options="--help --console --token-file --ca --json" ;;
        "routers show") options="--help --console --token-file --ca --json" ;;
        "console init") options="--help --db --url" ;;
        "console user") options="--help --db --url --create --role --tap --no-tap --password-file --keep-tokens --disable --enable --first-admin" ;;
        "console backup") options="--help --db --with-keys --passphrase-file" ;;
        "console restore") options="--help --db --keys --replace --passphrase-file" ;;
        "console adopt") options="--help --db" ;;
        "classify") options="--help --json --senders --list --check" ;;
    esac
    if ((COMP_CWORD == 1)); then
        COMPREPLY=($(compgen -W "run relay config status tap spool rules query classify try enrol console routers import --help --version" -- "$word"))
    elif ((COMP_CWORD == 2)) && [[ $verbs ]]; then
        COMPREPLY=($(compgen -W "$verbs --help" -- "$word"))
    elif [[ $word == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$word"))
    else
        case $before in
            --limit | --router | --router-label | --selector | --rule | --port | --path | --at | --point | --filter | --rate | --for | --connector | --console | --manager | --note) ;;
            --ack) COMPREPLY=($(compgen -W "durable written queued" -- "$word")) ;;
            --pidfile | --control) COMPREPLY=($(compgen -f -- "$word")) ;;
            --senders | --check) COMPREPLY=($(compgen -d -- "$word")) ;;
            -*) [[ $files ]] && COMPREPLY=($(compgen $files -- "$word")) ;;
            *) ((COMP_CWORD == (${#verbs} ? 3 : 2))) && [[ $files ]] && COMPREPLY=($(compgen $files -- "$word")) ;;
        esac
    fi
    return 0
}

complete -o default -F _webhookrx twistd twist
complete -o filenames -F _webhookrx_command webhookrx
