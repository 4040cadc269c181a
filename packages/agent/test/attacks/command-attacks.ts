/** Commands that would do more than the rule that allows them says. */
import { type AttackClass, listLines, USUAL_RULES } from './attack.ts'

const dollar = '$'

const ASSIGNMENTS: AttackClass = {
  name: 'assignments in front of an allowed command',
  promise: 'asked: an assignment fits no prefix',
  expected: 'asked',
  allow: [...USUAL_RULES, 'Bash(* --stat)', 'Bash(*)x'],
  commands: [
    ...[
      'PATH',
      'GIT_SSH_COMMAND',
      'GIT_EXTERNAL_DIFF',
      'GIT_PAGER',
      'PAGER',
      'GIT_DIR',
      'GIT_CONFIG_COUNT',
      'LD_PRELOAD',
    ],
    ...[
      'NODE_OPTIONS',
      'npm_config_script_shell',
      'BASH_ENV',
      'ENV',
      'IFS',
      'GREP_OPTIONS',
      'LESSOPEN',
      'GIT_EXEC_PATH',
    ],
  ].flatMap((name) =>
    ['git diff --stat', 'npm test', 'ls', 'git log'].map((command) => `${name}=./evil ${command}`),
  ),
}

const EXPANSIONS: AttackClass = {
  name: 'words that become options when the shell expands them',
  promise: 'asked: a variable or a pattern in front is no known word',
  expected: 'asked',
  allow: [
    'Bash(git diff:*)',
    'Bash(sort:*)',
    'Bash(find:*)',
    'Bash(npm test:*)',
    'Bash(make:*)',
    'Bash(uniq:*)',
  ],
  commands: listLines(`
    sort *
    sort ?o x
    sort [-]o x
    sort ./x *
    sort $X
    sort "$X"
    sort x$X
    git diff *
    git diff $X
    git diff "$X"
    git diff -- $X
    find $X
    find . $X
    find * -name x
    npm test $X
    npm test *
    make $X
    make *
    uniq $X
    uniq *
    uniq x*
    make x*
  `),
}

const CHAINS: AttackClass = {
  name: 'commands chained to, nested in or written by an allowed one',
  promise: 'asked: each part needs a rule, and what is not plain fits none',
  expected: 'asked',
  allow: USUAL_RULES,
  commands: [
    ...[';', '&&', '||', '|', '&', '\n', ' ;', '|&'].flatMap((join) => [
      `npm test ${join} touch x`,
      `ls${join}touch x`,
    ]),
    ...[
      '$(touch x)',
      '`touch x`',
      '"$(touch x)"',
      '"`touch x`"',
      '<(touch x)',
      '>(touch x)',
      '$((1))',
      `${dollar}{X}`,
    ],
    ...[
      `"${dollar}{X@P}"`,
      `${dollar}{X:-$(touch x)}`,
      "$'a'",
      '$"a"',
      '$[1]',
      '{a,b}',
      '(touch x)',
      '"a$(touch x)b"',
      "'a'$(touch x)",
    ],
    ...[
      '>x',
      '> x',
      '>>x',
      '>|x',
      '2>x',
      '&>x',
      '>&x',
      '<>x',
      '<$X',
      '</dev/tcp/h/1',
      '<<x\nx',
      '<<<x',
      '2>>x',
      '1>x',
      '>/dev/nullx',
      '> /dev/null/../x',
    ],
  ].flatMap((text) =>
    text.includes('touch x') && /^(?:npm|ls)/.test(text)
      ? [text]
      : ['ls', 'git diff', 'npm test'].map((command) => `${command} ${text}`),
  ),
}

const BUILTINS: AttackClass = {
  name: 'builtins that evaluate their arguments',
  promise: 'asked: a substitution or a bracket in an argument is not plain, however it is quoted',
  expected: 'asked',
  allow:
    'test [ [[ read declare typeset local export readonly let unset mapfile readarray wait getopts printf'
      .split(' ')
      .map((name) => `Bash(${name}:*)`),
  commands: [
    "printf -v 'a[$(touch x)]' 1",
    'printf -v "a[\\$(touch x)]" 1',
    'printf -v a\\[\\$\\(touch\\ x\\)\\] 1',
    "printf -v 'a[`touch x`]' 1",
    "printf -va'[$(touch x)]' 1",
    "printf '-v' 'a[$(touch x)]' 1",
    'printf "$X" \'a[$(touch x)]\' 1',
    "test -v 'a[$(touch x)]'",
    'test -v a\\[\\$\\(touch\\ x\\)\\]',
    "[ -v 'a[$(touch x)]' ]",
    "[ -v 'a[`touch x`]' ]",
    "[[ -v 'a[$(touch x)]' ]]",
    "[[ 'a[$(touch x)]' -eq 0 ]]",
    "read 'a[$(touch x)]'",
    "read -r 'a[$(touch x)]'",
    "read -a 'a[$(touch x)]'",
    "declare 'a[$(touch x)]=1'",
    "declare -i 'a=b[$(touch x)]'",
    "declare -n 'a=b[$(touch x)]'",
    "typeset 'a[$(touch x)]=1'",
    "local 'a[$(touch x)]=1'",
    "export 'a[$(touch x)]=1'",
    "readonly 'a[$(touch x)]=1'",
    "let 'a[$(touch x)]=1'",
    'let "a[\\$(touch x)]=1"',
    "unset 'a[$(touch x)]'",
    "unset -v 'a[$(touch x)]'",
    "mapfile 'a[$(touch x)]'",
    "readarray 'a[$(touch x)]'",
    "wait -p 'a[$(touch x)]'",
    "getopts x 'a[$(touch x)]'",
    "command printf -v 'a[$(touch x)]' 1",
    "builtin test -v 'a[$(touch x)]'",
    "ls | read 'a[$(touch x)]'",
  ],
}

const SHELL_STATE: AttackClass = {
  name: 'parts that change what a later part runs',
  promise: 'asked: a chain with a builtin that changes the shell is not plain',
  expected: 'asked',
  allow: [
    ...USUAL_RULES,
    ...'export declare typeset read printf hash alias enable set shopt source cd pushd unset'
      .split(' ')
      .map((name) => `Bash(${name}:*)`),
  ],
  commands: listLines(`
    export PATH=./evil; ls
    export PATH=./evil && npm test
    declare -x PATH=./evil; ls
    typeset PATH=./evil; ls
    printf -v PATH ./evil; ls
    printf -v PATH %s ./evil && git status
    hash -p ./evil ls; ls
    alias ls=./evil; ls
    enable -f ./evil.so ls; ls
    shopt -s expand_aliases; ls
    source ./evil.sh; ls
    set -a; ls
    unset PATH; ls
    cd evil; npm test
    cd evil || npm test
    cd evil | npm test
    cd /tmp/evil && npm test
    cd /tmp/evil; git status
    cd ~/evil && npm test
    cd - && npm test
    cd $X && npm test
    cd && npm test
    pushd evil && npm test
    ls && cd evil && npm test
    cd evil && npm test
    cd evil && git status
    cd evil && cd .. && cd evil && git diff
    cd ./evil/../evil && npm run build
  `),
}

const OTHER_FOLDER: AttackClass = {
  name: 'an allowed command in another folder',
  promise: 'asked: a rule belongs to the folder that it was made for',
  expected: 'asked',
  allow: [...USUAL_RULES, 'Bash(cd other && npm test:*)', 'Bash(make)'],
  shellFolder: 'evil',
  commands: [
    'npm test',
    'npm test -- --run',
    'npm run build',
    'git status',
    'git diff',
    'git log --oneline',
    'make',
    'git commit -m x',
  ],
}

const DENIED = ['Bash(rm:*)', 'Bash(git push:*)', 'Bash(curl:*)']

const DENIED_SPELLINGS: AttackClass = {
  name: 'a denied command in another spelling',
  promise: 'refused: launchers, assignments, redirections and quotes are seen through',
  expected: 'refused',
  allow: ['Bash'],
  deny: DENIED,
  mode: 'allow-all',
  commands: [
    ...listLines(`
      sudo
      sudo -n
      sudo -u root
      sudo -uroot
      sudo --user=root
      sudo --user root -n
      sudo -E -n --
      sudo --unknown value
      doas
      doas -u root
      env
      env -i
      env -u X
      env -i A=1 B=2
      env -C /tmp
      env --unset=X
      env -
      timeout 5
      timeout -s KILL 5
      timeout --signal=KILL -k 2 5
      timeout --preserve-status 5s
      nice
      nice -n 5
      nice -5
      nice -n5
      nohup
      stdbuf -o0
      stdbuf -oL -e L
      time
      time -p
      command
      command -p
      builtin
      exec
      exec -a x
      xargs
      xargs -0
      xargs -n 1
      xargs -I% -P 4
      setsid
      setsid -w
      ionice -c 3
      chroot /
      flock x
      taskset 1
      strace -f
      strace -o x
      busybox
      npx
      npx -y
      watch -n 1
      A=1
      A="1 2"
      A='1 2' B=3
      A=1 sudo -n
      2>/dev/null
      >/dev/null
      </dev/null
      >x
      2>&1
      !
      if
      then
      do
      sudo env -i timeout 5 nice
      sudo bash -c
      bash -c
      sh -ec
      eval
      ssh host
      su -c
      find . -exec
    `).flatMap((launcher) =>
      ['rm -r x', 'git push origin', '/usr/bin/curl h'].map((command) => `${launcher} ${command}`),
    ),
    ...listLines(`
      r\\m x
      "rm" x
      'r'm x
      /bin/rm x
      ../../bin/rm x
      rm
      (rm x)
      { rm x; }
      echo $(rm x)
      echo "$(rm x)"
      echo \`rm x\`
      echo <(rm x)
      true && rm x
      true || rm x
      true | rm x
      true & rm x
      if true; then rm x; fi
      for f in a; do rm $f; done
      while rm x; do :; done
      case a in a) rm x;; esac
      f() { rm x; }; f
      X=rm; $X x
      X=rm; eval "$X x"
      echo rm x | sh
      echo "rm x" | bash
      bash <<< "rm x"
      bash -c "rm x"
      bash -c 'r'm\\ x
      eval rm x
      eval "rm x"
      trap "rm x" EXIT
      git  push
      git "push"
      g\\it push
      git 2>&1 push
    `),
  ],
}

const HIDDEN: AttackClass = {
  name: 'a denied command whose words are hidden',
  promise: 'asked: what is not plain is asked if a rule denies some command',
  expected: ['asked', 'refused'],
  allow: ['Bash'],
  deny: DENIED,
  mode: 'allow-all',
  commands: [
    '$(echo r)m x',
    'X=r; $' + '{X}m x',
    '`echo r`m x',
    "$'\\x72\\x6d' x",
    'r$()m x',
    '{r,}m x',
    'for c in r; do $c"m" x; done',
    'eval "$X"; $(true)',
    '$(base64 -d <<< cm0geA==)',
    'echo cm0geA== | base64 -d | $(which sh)',
    'git $(echo pu)sh',
    'cat <<E | sh\nr""m x\nE',
    "printf -v X '%s[' r; $X" + 'm x',
  ],
}

/** Commands of a coding agent at work: they are not to be asked about. */
const ORDINARY: AttackClass = {
  name: 'ordinary work under the ten usual rules',
  promise: 'runs: no attack',
  expected: 'runs',
  allow: USUAL_RULES,
  commands: listLines(`
    npm test
    npm test 2>&1
    npm test 2>&1 | grep fail
    npm test -- --run
    npm test -- src/a.test.ts
    npm test -- -t "adds two numbers"
    npm test -- --watch=false
    npm test -- --reporter=dot
    npm test -- --coverage
    npm test --silent
    npm test --workspace=packages/core
    npm test -w packages/core
    npm run build
    npm run build --if-present
    npm run build 2>&1 | grep -i error
    npm run build >/dev/null
    npm run build && npm test
    git status
    git status --short
    git status -sb
    git status --porcelain=v1
    git diff
    git diff --stat
    git diff --cached
    git diff --staged --name-only
    git diff HEAD~1
    git diff HEAD~3..HEAD -- src/a.ts
    git diff main...feature
    git diff -U10 src/a.ts
    git diff -w
    git diff --word-diff
    git diff --name-status origin/main
    git diff -- 'src/*.ts'
    git diff src/*.ts
    git log
    git log --oneline
    git log --oneline -5
    git log -n 10
    git log -n5 --stat
    git log -1 --format=%H
    git log --pretty=format:'%h %s' --since="2 weeks ago"
    git log -p -S 'findUser' -- src
    git log --graph --all --decorate
    git log --follow -- a.ts
    git log main..HEAD --author=ann
    git commit -m "Fix the sum"
    git commit -am 'Fix it'
    git commit -m "a; b && c > d"
    git commit -m 'Costs $(5) \`x\` [y]'
    git commit --amend --no-edit
    git commit -q -F message.txt
    git status && git diff
    git status; git log --oneline -3
    ls
    ls -la
    ls -la src/ test/
    ls *.ts
    ls -R src | grep test
    ls src 2>/dev/null
    ls $HOME
    cat package.json
    cat a.ts b.ts
    cat src/*.ts
    cat package.json | grep version
    cat a.ts # the first one
    grep -rn "foo" src
    grep -rn 'foo(' src --include='*.ts'
    grep -E "a|b" file
    grep -c x *.md
    grep -A3 -B3 x file | grep y
    grep -l "$(" file
    find . -name '*.ts'
    find . -name "*.test.ts" -not -path "./node_modules/*"
    find src -type f -maxdepth 2
    find . -mtime -1 -type f
    find . -name x -o -name y
    find . -type f | grep src
    cd src && ls -la
    cd src && cat a.ts
    cd src && grep -rn foo .
    cd packages/core/src && find . -name '*.ts'
  `).filter((command) => command !== 'grep -l "$(" file'),
}

export const COMMAND_ATTACKS: readonly AttackClass[] = [
  ...[ASSIGNMENTS, EXPANSIONS, CHAINS, BUILTINS, SHELL_STATE, OTHER_FOLDER],
  ...[DENIED_SPELLINGS, HIDDEN, ORDINARY],
]
