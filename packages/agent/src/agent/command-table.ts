/**
 * What the rules for commands know about programs, as data. A row lists the options with which a program does only what its name says: it
 * writes no other file and starts no other program. With any other option, even an abbreviation, no rule with a prefix or star matches. A
 * list of dangerous options would have to be complete; a list of safe options need not be.
 */

/** The safe use of a program: what a rule with a prefix or star may match. */
export interface ProgramUse {
  /**
   * The options, exactly as they are written. Letters after one dash can be joined (`-la`), and a letter with a colon can
   * have its value attached (`-n5`). A long option can have a value after `=`. With a colon or a `=` at its end, it takes the
   * next word unless its value is attached; with a `?`, it can only have it attached. `any`: no option does more than read.
   */
  readonly options: string
  /** True if options with one dash are whole words, as in `find -name`. */
  readonly hasWordOptions?: boolean
  /** Pattern for the first word that is neither an option nor its value. */
  readonly first?: RegExp
  /** Options whose value takes the place of that first word, such as the script of `sed -e`. */
  readonly firstOptions?: string
  /** Pattern for every word that is not an option, including values of options. */
  readonly operands?: RegExp
  /** Maximum number of words that are neither options nor their values. */
  readonly maxOperands?: number
  /** True if the program runs text that it is given, so that only a rule with the exact command matches. Default: false. */
  readonly isExactOnly?: boolean
  /** Number of words after the name in a suggested rule, such as 1 for `npm run build:*`. Default: 0. */
  readonly namedWords?: number
  /** False if a prefix would allow too much whatever the options, so that the exact command is suggested. Default: true. */
  readonly isSuggested?: boolean
  /** True if the program does the same in every folder, so that a rule is valid in all of them. Default: false. */
  readonly isForEveryFolder?: boolean
}

const READS: ProgramUse = { options: 'any', isForEveryFolder: true }

/** Programs without any option that writes a file or starts a program. */
const READERS =
  'cat ls head tail wc cut tr pwd echo true false stat du df basename dirname realpath readlink uname whoami id groups printenv which type nl tac rev fold expand unexpand paste comm join cmp diff md5sum sha1sum sha256sum shasum cksum od hexdump strings grep egrep fgrep ps uptime free nproc tty sleep seq jq test ['

const DIFF_OPTIONS =
  '-p -u -s -w -b -R -z -U? -M -C -D -S: -G: -l: -i -E --patch --no-patch --unified --raw --patch-with-raw --stat --numstat --shortstat --compact-summary --summary --dirstat --name-only --name-status --color --no-color --word-diff --color-words --word-diff-regex --check --minimal --patience --histogram --diff-algorithm --indent-heuristic --no-renames --find-renames --find-copies --irreversible-delete --diff-filter --pickaxe-all --pickaxe-regex --text --ignore-space-at-eol --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-cr-at-eol --inter-hunk-context --function-context -W --exit-code --quiet -q --no-ext-diff --no-textconv --ignore-submodules --submodule --src-prefix --dst-prefix --no-prefix --relative --no-relative --abbrev --full-index --cached --staged --merge-base --base --ours --theirs --cc -c'
const LOG_OPTIONS = `${DIFF_OPTIONS} -NUMBER -n: -g -F -P -m -t --oneline --graph --all --branches --tags --remotes --decorate --no-decorate --pretty --format --date --max-count --skip --since --after --until --before --author --committer --grep --all-match --invert-grep --regexp-ignore-case --fixed-strings --merges --no-merges --first-parent --follow --reverse --topo-order --date-order --author-date-order --walk-reflogs --abbrev-commit --no-abbrev-commit --parents --children --left-right --cherry-pick --cherry-mark --cherry --not --source --full-diff --simplify-by-decoration --show-signature --no-notes --no-patch -L:`
const NAMED_REMOTE = /^(?:origin|upstream)$/

/** Git: subcommands that only read, and those that change the repository only as their names say. */
const GIT_ROWS: Readonly<Record<string, ProgramUse>> = {
  'git diff': { options: DIFF_OPTIONS },
  'git log': { options: LOG_OPTIONS },
  'git show': { options: LOG_OPTIONS },
  'git reflog': { options: LOG_OPTIONS, first: /^(?:show|list|exists|HEAD|main|master|.*[@/].*)$/ },
  'git status': {
    options:
      '-s -b -z -v -u? --short --branch --show-stash --porcelain --long --verbose --untracked-files --ignored --ignore-submodules --column --no-column --ahead-behind --no-ahead-behind --renames --no-renames --find-renames',
  },
  'git blame': {
    options:
      '-b -c -e -f -l -n -p -s -t -w -L: -M? -C? --root --line-porcelain --porcelain --incremental --show-stats --show-name --show-number --show-email --date --since --reverse --first-parent --color-lines --color-by-age --abbrev',
  },
  'git grep': {
    options:
      '-i -n -l -L -c -w -v -E -F -G -P -h -H -o -p -q -z -W -e -a -I -r -NUMBER -A: -B: -C: -m: --ignore-case --line-number --column --files-with-matches --name-only --files-without-match --count --word-regexp --invert-match --extended-regexp --fixed-strings --perl-regexp --only-matching --heading --break --show-function --function-context --context --after-context --before-context --cached --untracked --no-index --color --no-color --and --or --not --all-match --quiet --max-depth --max-count --text --full-name --recurse-submodules',
  },
  'git ls-files': {
    options:
      '-c -d -m -o -i -s -u -z -t -v -k --cached --deleted --modified --others --ignored --stage --unmerged --exclude-standard --error-unmatch --full-name --directory --no-empty-directory --abbrev --eol --deduplicate --exclude -x: --recurse-submodules',
  },
  'git ls-tree': {
    options:
      '-r -d -t -l -z --long --name-only --name-status --object-only --full-name --full-tree --abbrev --format',
  },
  'git cat-file': { options: '-t -s -e -p --batch-check --batch --batch-all-objects' },
  'git rev-parse': {
    options:
      '-q --show-toplevel --abbrev-ref --short --verify --quiet --git-dir --git-common-dir --absolute-git-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository --show-prefix --show-cdup --show-current --symbolic --symbolic-full-name --all --branches --tags --remotes',
  },
  'git rev-list': { options: `${LOG_OPTIONS} --count --objects --no-walk` },
  'git merge-base': { options: '-a --all --octopus --is-ancestor --fork-point' },
  'git name-rev': { options: '--name-only --tags --refs --all --always' },
  'git describe': {
    options:
      '--all --tags --long --always --dirty --broken --abbrev --match --exclude --exact-match --contains --first-parent --candidates',
  },
  'git shortlog': {
    options: '-s -n -e -c --summary --numbered --email --committer --since --until --all --no-merges --group',
  },
  'git for-each-ref': { options: '--format --sort --count --points-at --merged --no-merged --contains' },
  'git count-objects': { options: '-v -H --verbose --human-readable' },
  'git check-ignore': { options: '-v -q -n --verbose --quiet --non-matching --no-index' },
  'git branch': {
    options:
      '-a -r -v -vv -l -q -t --all --remotes --verbose --list --show-current --quiet --track --no-track --contains --no-contains --merged --no-merged --points-at --format --sort --color --no-color --column --abbrev',
  },
  'git tag': {
    options:
      '-a -m: -l -n? --annotate --message --list --contains --no-contains --merged --no-merged --points-at --sort --format --column --color',
  },
  'git remote': { options: '-v --verbose', operands: /^(?:show|get-url|origin|upstream)$/ },
  'git config --get': { options: '--local --global --show-origin --show-scope -z' },
  'git config --list': { options: '--local --global --show-origin --show-scope -z --name-only' },
  'git config -l': { options: '--local --global --show-origin --show-scope -z --name-only' },
  'git config get': { options: '--local --global --show-origin --show-scope -z --all' },
  'git config list': { options: '--local --global --show-origin --show-scope -z --name-only' },
  'git worktree list': { options: '-v -z --verbose --porcelain' },
  'git submodule status': { options: '--cached --recursive' },
  'git stash list': { options: LOG_OPTIONS },
  'git stash show': { options: `${DIFF_OPTIONS} --include-untracked --only-untracked` },
  'git stash': {
    options:
      '-m: -u -k -S -a -q --message --include-untracked --keep-index --no-keep-index --staged --all --quiet --index',
    first: /^(?:push|save|pop|apply)$/,
  },
  'git add': {
    options: '-A -u -v -n -N --all --update --verbose --dry-run --intent-to-add --no-all --renormalize',
  },
  'git commit': {
    options:
      '-a -m: -q -s -v -F: -C: -u? --all --message --amend --no-edit --quiet --signoff --verbose --file --reuse-message --allow-empty --dry-run --short --fixup --squash --date --author --reset-author --only --include --no-status --status --no-verbose --no-gpg-sign',
  },
  'git checkout': {
    options: '-b -q -t -d --quiet --track --no-track --detach --ours --theirs',
    isSuggested: false,
  },
  'git switch': { options: '-c -d -q -t --create --detach --quiet --track --no-track' },
  'git restore': { options: '-s: -S -W -q --source --staged --worktree --quiet', isSuggested: false },
  'git reset': { options: '-q --soft --mixed --quiet', isSuggested: false },
  'git rm': { options: '-r -n -q --cached --dry-run --quiet --ignore-unmatch', isSuggested: false },
  // `git mv` may move a file into .git/hooks, or through a link out of the repository, before it reports an error.
  'git mv': { options: '', isExactOnly: true, isSuggested: false },
  'git clean': { options: '-n -d -q -e: --dry-run --quiet --exclude', isSuggested: false },
  'git merge': {
    options:
      '-m: -q -n --message --no-ff --ff --ff-only --squash --abort --continue --quit --no-commit --commit --no-edit --stat --no-stat --quiet --allow-unrelated-histories',
  },
  'git rebase': {
    options:
      '-q --continue --abort --skip --quit --onto --quiet --autostash --no-autostash --keep-base --rebase-merges --show-current-patch --stat --no-stat',
    isSuggested: false,
  },
  'git cherry-pick': {
    options: '-n -x -m: --no-commit --continue --abort --skip --quit --mainline --allow-empty --ff',
  },
  'git revert': { options: '-n -m: --no-commit --no-edit --continue --abort --skip --quit --mainline' },
  // With an operand, `git init` creates a repository in any folder.
  'git init': { options: '-q -b: --quiet --initial-branch=', maxOperands: 0 },
  'git fetch': {
    options:
      '-a -p -P -t -q -v -n -j: --all --prune --prune-tags --tags --no-tags --quiet --verbose --dry-run --depth= --deepen= --unshallow --jobs= --progress --atomic --recurse-submodules --no-recurse-submodules',
    first: NAMED_REMOTE,
  },
  'git pull': {
    options:
      '-q -v -p -r -n --quiet --verbose --rebase --no-rebase --ff --ff-only --no-ff --prune --tags --no-tags --all --depth= --autostash --no-autostash --no-edit --progress --stat --no-stat',
    first: NAMED_REMOTE,
  },
  'git push': {
    options:
      '-u -q -v -n --set-upstream --quiet --verbose --dry-run --tags --follow-tags --progress --atomic --porcelain',
    first: NAMED_REMOTE,
    // `:branch` deletes a branch, and `+branch` overwrites it.
    operands: /^[^+:]/,
  },
  'git ls-remote': {
    options: '-h -t -q --heads --branches --tags --refs --quiet --exit-code --get-url --symref',
    first: NAMED_REMOTE,
  },
  'git clone': {
    options:
      '-q -v -n -b: -j: --quiet --verbose --progress --no-checkout --branch= --depth= --single-branch --no-single-branch --no-tags --shallow-since= --jobs= --filter= --sparse',
    // Without a folder name, the clone gets the repository's name, which is not a folder that programs read settings from.
    first: /^https:\/\/[\w.-]+(?::\d+)?\/(?:[\w.-]+\/)*[A-Za-z0-9_][\w.-]*$/,
    maxOperands: 1,
    isSuggested: false,
  },
  'git --version': READS,
}

const TEST_OPTIONS =
  '-t -u -i -b -w -x -q -v -s -g -h --run --watch --no-watch --watchAll --reporter=dot --reporter=verbose --reporter=default --reporter=basic --reporter=json --reporter=spec --reporter=list --verbose --silent --quiet --bail --ci --coverage --no-coverage --update --updateSnapshot --testNamePattern --testPathPattern --testPathPatterns --runInBand --maxWorkers --forceExit --grep --fgrep --invert --timeout --testTimeout --retry --parallel --project --changed --onlyChanged --passWithNoTests --no-file-parallelism --color --no-color --colors --exit --shard --if-present --workspace --workspaces --include-workspace-root --test-name-pattern --test-only --list'
const CARGO_OPTIONS =
  '-p: -q -v -j: -r --package --workspace --all --exclude --lib --bins --bin --examples --example --tests --test --benches --bench --all-targets --all-features --no-default-features --features -F: --release --profile --quiet --verbose --locked --offline --frozen --keep-going --no-run --no-fail-fast --doc --nocapture --test-threads --ignored --include-ignored --exact --show-output --skip --message-format --color --jobs --check'
const TSC_OPTIONS = '--noEmit --pretty --strict --skipLibCheck --listFiles --showConfig --version -v'
/** A word that begins with `@` names a file with further options. */
const NO_FILE_OF_OPTIONS = /^[^@]/
const LINT_OPTIONS =
  '-q --quiet --max-warnings --no-color --color --ext --no-warn-ignored --stats --no-error-on-unmatched-pattern --report-unused-disable-directives --check -l --list-different --no-fix --error-on-warnings'

/** Programs that run code of the project, which the agent may just have changed. Only the sandbox confines that code. */
const RUNNER_ROWS: Readonly<Record<string, ProgramUse>> = {
  ...listRows('npm test,npm t,pnpm test,yarn test,bun test,vitest,npx vitest,jest,npx jest,mocha,npx mocha', {
    options: TEST_OPTIONS,
  }),
  ...listRows('npm run,npm run-script,pnpm run,yarn run,bun run', { options: TEST_OPTIONS, namedWords: 1 }),
  ...listRows('npm install,npm i,pnpm install,pnpm add,yarn add,yarn install', {
    options:
      '-D -E -S -O -P -w --save --save-dev --save-exact --save-optional --save-peer --no-save --dev --exact --legacy-peer-deps --prefer-offline --offline --no-audit --no-fund --omit --include --production --ignore-scripts --frozen-lockfile --package-lock-only --workspace --workspaces --silent --loglevel --dry-run',
    isSuggested: false,
  }),
  'npm ci': {
    options:
      '--no-audit --no-fund --omit --include --ignore-scripts --prefer-offline --offline --silent --loglevel --legacy-peer-deps',
  },
  ...listRows('npm ls,npm list,npm outdated,npm view,npm why,npm --version,pnpm list,yarn list', {
    options: '-a -g -l --all --depth --json --long --omit --prod --dev --global',
  }),
  make: {
    options:
      '-j? -k -s -n -B -i -q -w -l? --jobs --keep-going --silent --quiet --dry-run --just-print --always-make --question --no-print-directory --print-directory --output-sync --trace --version',
    operands: /^[^=]*$/,
    namedWords: 1,
  },
  ...listRows('cargo build,cargo test,cargo check,cargo clippy,cargo fmt,cargo doc,cargo bench,cargo tree', {
    options: CARGO_OPTIONS,
  }),
  ...listRows('go build,go test,go vet,go list,go fmt', {
    options:
      '-v -race -short -cover -run -count -bench -benchmem -benchtime -timeout -failfast -parallel -p -json -tags -mod -x -n -list -skip -shuffle -cpu -m -f -deps -trimpath',
    hasWordOptions: true,
  }),
  'go version': READS,
  ...listRows('pytest,python -m pytest,python3 -m pytest,uv run pytest,poetry run pytest', {
    options:
      '-x -q -v -s -k: -m: -l -r: -n: --exitfirst --quiet --verbose --maxfail --tb --lf --last-failed --ff --failed-first --nf --sw --stepwise --no-header --no-summary --durations --co --collect-only --capture --showlocals --strict-markers --disable-warnings --color --deselect --ignore --cov --no-cov -W:',
    operands: NO_FILE_OF_OPTIONS,
  }),
  ...listRows('tsc,npx tsc', { options: TSC_OPTIONS, operands: NO_FILE_OF_OPTIONS }),
  ...listRows('tsc --noEmit,npx tsc --noEmit', {
    options: `${TSC_OPTIONS} -p --project`,
    // The value of --noEmit can be a word of its own.
    operands: /^(?!@|false$)/,
  }),
  ...listRows(
    'eslint,npx eslint,prettier,npx prettier,biome check,npx biome check,biome lint,npx biome lint,ruff check,mypy',
    { options: LINT_OPTIONS, operands: NO_FILE_OF_OPTIONS },
  ),
}

const COUNTED_PRINT = '(?:\\d+|\\$)(?:,(?:\\+?\\d+|\\$))?[pdq]'
/** Scripts of sed that only print, delete or replace: no command that writes a file or runs a program, and no such flag of `s`. */
const SED_SCRIPT = new RegExp(
  `^(?:${COUNTED_PRINT}(?:; ?${COUNTED_PRINT})*|/[^/\\\\\\n]+/[pd]|s([/|#,])(?:(?!\\1)[^\\\\\\n]|\\\\[^\\n])*\\1(?:(?!\\1)[^\\\\\\n]|\\\\[^\\n])*\\1[gpiI0-9]*)$`,
)
const AWK_SCRIPT = /^(?:NR ?[<>=]=? ?\d+ ?)?\{ ?print(?: ?\$(?:\d+|NF)(?:, ?\$(?:\d+|NF))*)? ?\}$/

/** Other programs that have both harmless options and options that write a file or start a program. */
const OTHER_ROWS: Readonly<Record<string, ProgramUse>> = {
  sort: {
    options:
      '-b -d -f -g -h -i -M -n -R -r -V -c -C -m -s -u -z -k: -t: --ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort --human-numeric-sort --month-sort --numeric-sort --random-sort --reverse --version-sort --check --merge --stable --unique --zero-terminated --key --field-separator',
    isForEveryFolder: true,
  },
  uniq: {
    options:
      '-c -d -D -u -i -z -f: -s: -w: --count --repeated --all-repeated --unique --ignore-case --zero-terminated --group --skip-fields= --skip-chars= --check-chars=',
    maxOperands: 1,
    isForEveryFolder: true,
  },
  // Digits alone set the clock.
  date: {
    options: '-u -R -I? -d: --utc --iso-8601 --rfc-3339 --rfc-email --date',
    operands: /[^\d.]/,
    isForEveryFolder: true,
  },
  printf: { options: '', isForEveryFolder: true },
  tree: {
    options:
      '-a -d -f -i -l -s -h -p -u -g -D -F -C -n -L: -I: -P: --noreport --dirsfirst --prune --gitignore --filelimit --du',
    isForEveryFolder: true,
  },
  file: {
    options: '-b -i -L -k -h --brief --mime --mime-type --mime-encoding --dereference --no-dereference',
    isForEveryFolder: true,
  },
  rg: {
    options:
      '-i -S -s -n -N -l -c -o -v -w -x -F -P -U -a -h -H -I -L -p -q -0 -. -u -e: -g: -t: -T: -A: -B: -C: -m: -d: -j: -r: --ignore-case --smart-case --case-sensitive --line-number --no-line-number --files --files-with-matches --files-without-match --count --count-matches --only-matching --invert-match --word-regexp --line-regexp --fixed-strings --pcre2 --multiline --multiline-dotall --text --no-filename --with-filename --follow --heading --no-heading --pretty --quiet --null --hidden --no-ignore --no-ignore-vcs --glob --iglob --type --type-not --type-list --after-context --before-context --context --max-count --max-depth --max-columns --color --colors --column --json --stats --sort --sortr --trim --replace --regexp --threads --vimgrep --passthru --unrestricted --no-messages --no-config --max-filesize --no-require-git',
    isForEveryFolder: true,
  },
  find: {
    options:
      '-NUMBER -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -maxdepth -mindepth -size -mtime -mmin -atime -amin -ctime -cmin -newer -anewer -cnewer -newermt -empty -not -o -or -a -and -print -print0 -printf -prune -perm -user -group -uid -gid -nouser -nogroup -ls -L -H -P -samefile -inum -links -readable -writable -executable -true -false -quit -depth -xdev -mount -daystart -follow -fstype -lname -ilname',
    hasWordOptions: true,
    isForEveryFolder: true,
  },
  sed: {
    options: '-n -E -r -s -u -z -e: --expression= --quiet --silent --regexp-extended --separate --null-data',
    first: SED_SCRIPT,
    firstOptions: '-e --expression',
    isForEveryFolder: true,
  },
  ...listRows('awk,gawk,mawk', { options: '-F:', first: AWK_SCRIPT, isForEveryFolder: true }),
  curl: {
    options:
      '-s -S -f -L -I -i -v -g -4 -6 -m: --silent --show-error --fail --fail-with-body --location --head --include --verbose --max-time --connect-timeout --retry --retry-delay --compressed --http1.1 --http2 --ipv4 --ipv6 --no-progress-meter --max-redirs --range',
    // Without a scheme, curl guesses it from the host name. A number may be the value of an option.
    operands: /^(?:https?:\/\/.*|(?:localhost|127\.0\.0\.1)(?::\d+)?(?:\/.*)?|\d+)$/i,
  },
  'wget --spider': { options: '-q -S -T: -t: --quiet --server-response --timeout --tries' },
  ...listRows('wget -qO-,wget -O-', {
    options: '-q -S -T: -t: --quiet --server-response --timeout --tries --no-verbose',
  }),
  ...listRows('tar tf,tar -tf,tar tvf,tar -tvf,tar tzf,tar -tzf,tar tzvf,tar -tzvf', {
    options: '-v -z -j -J --verbose --gzip',
    operands: /^[^:]*$/,
  }),
  ...listRows('unzip -l,unzip -v,zipinfo', { options: '-1 -q -v' }),
  ...listRows('gcc,cc,clang,g++,c++,clang++', {
    options:
      '-c -g -E -S -O -O0 -O1 -O2 -O3 -Os -Og -Wall -Wextra -Wpedantic -pedantic -Werror -Wshadow -Wconversion -fsyntax-only -fPIC -pthread -m32 -m64 -std -v --version',
    hasWordOptions: true,
    operands: NO_FILE_OF_OPTIONS,
  }),
  ...listRows('docker ps,docker images,docker logs,docker version,podman ps,podman images', {
    options:
      '-a -q -n: -l -t --all --quiet --filter --format --last --latest --no-trunc --size --tail --since --until --timestamps',
  }),
  ...listRows('kubectl get,kubectl describe,kubectl logs,kubectl version', {
    options:
      '-A -n: -o: -l: -w -c: --all-namespaces --namespace --output --selector --watch --show-labels --tail --since --container --previous --no-headers --sort-by',
  }),
  ...listRows(
    'gh pr list,gh pr view,gh pr diff,gh pr checks,gh pr status,gh issue list,gh issue view,gh issue status,gh run list,gh run view,gh release list,gh release view,gh repo view',
    {
      options:
        '-L: -s: -a: -l: -A: -S: -R: -q: -b: --limit --state --assignee --label --author --search --repo --json --jq --comments --log --log-failed --job --branch --name-only --color --draft --head --base',
    },
  ),
  ...listRows('command -v,command -V', { options: '', isForEveryFolder: true }),
}

/** Programs with options that run a given command; without options they are safe. */
const BARE_PROGRAMS = 'zip rsync scp tee man less more'
/** Programs that execute commands from their input. */
const EDITORS = 'vim vi nvim view ex ed emacs nano sftp'

function listRows(names: string, row: ProgramUse): Readonly<Record<string, ProgramUse>> {
  return Object.fromEntries(names.split(',').map((name) => [name, row]))
}

/** The rows of the table, by the words at the beginning of a command: `git diff`, `npx jest`. */
export const PROGRAM_USES: ReadonlyMap<string, ProgramUse> = new Map(
  Object.entries({
    ...Object.fromEntries(READERS.split(' ').map((name) => [name, READS])),
    ...GIT_ROWS,
    ...RUNNER_ROWS,
    ...OTHER_ROWS,
    ...listRows(BARE_PROGRAMS.replaceAll(' ', ','), { options: '', operands: /^[^+]/, isSuggested: false }),
    ...listRows(EDITORS.replaceAll(' ', ','), { options: '', isExactOnly: true, isSuggested: false }),
    xxd: { options: '-b -c: -g: -l: -s: -u -p', maxOperands: 1, isForEveryFolder: true },
  }),
)

/** The first words of all rows. */
export const KNOWN_PROGRAMS: ReadonlySet<string> = new Set(
  [...PROGRAM_USES.keys()].map((name) => name.split(' ')[0] ?? ''),
)

/** Programs whose rows begin with a subcommand: `git status` says nothing about `git config`. */
export const PROGRAMS_WITH_SUBCOMMANDS: ReadonlySet<string> = new Set(
  [...PROGRAM_USES.keys()].flatMap((name) => {
    const [program = '', next = '-'] = name.split(' ')
    return next.startsWith('-') || PROGRAM_USES.has(program) ? [] : [program]
  }),
)

/** The row of a known program in a use that no other row lists: a rule must name the subcommand and every option. */
export const UNLISTED_USE: ProgramUse = { options: '', isSuggested: false }

/** Options directly after a program's name that do not change what it does, by program. */
export const NEUTRAL_OPTIONS: ReadonlyMap<string, readonly string[]> = new Map([
  ['git', ['--no-pager', '-P', '--no-optional-locks']],
])

/** Programs that only print or do nothing. In a chain, they need no rule of their own. */
export const PRINTING_PROGRAMS: ReadonlySet<string> = new Set(['echo', 'true', 'false', ':'])

/** A program that runs the command in its own words. Options are separated by blanks. */
export interface Launcher {
  /** Options without a value, or with an attached one. */
  readonly flags: string
  /** Options that take the next word as value, unless the value is attached. */
  readonly values: string
  /** Number of operands before the program, such as 1 for the time of `timeout 5`. */
  readonly operands: number
}

function launcher(flags = '', values = '', operands = 0): Launcher {
  return { flags, values, operands }
}

/** Programs and shell keywords that run the command after them, with their options. */
export const LAUNCHERS: ReadonlyMap<string, Launcher> = new Map(
  Object.entries({
    ...Object.fromEntries(
      ['!', 'if', 'then', 'elif', 'else', 'while', 'until', 'do', 'builtin', 'busybox', 'coproc'].map(
        (word) => [word, launcher()],
      ),
    ),
    command: launcher('-p'),
    exec: launcher('-c -l', '-a'),
    env: launcher('- -i -0 -v --ignore-environment --null --debug', '-u -C --unset --chdir'),
    sudo: launcher(
      '-n -E -H -S -k -K -b -i -s -A -P -B --non-interactive --preserve-env --set-home --stdin --background --login --shell --askpass',
      '-u -g -p -h -C -r -t -T -U -D -R --user --group --prompt --host --chdir --chroot --role --type --other-user --command-timeout --close-from',
    ),
    doas: launcher('-n -s -L', '-u -C'),
    timeout: launcher('-v --foreground --preserve-status --verbose', '-s -k --signal --kill-after', 1),
    nice: launcher('', '-n --adjustment'),
    ionice: launcher('-t --ignore', '-c -n --class --classdata'),
    chrt: launcher('-b -f -i -o -r -R --batch --fifo --idle --other --rr', '-T -P -D', 1),
    taskset: launcher('-a -c --all-tasks --cpu-list', '', 1),
    nohup: launcher(),
    setsid: launcher('-c -f -w --ctty --fork --wait'),
    stdbuf: launcher('', '-i -o -e --input --output --error'),
    time: launcher('-p -v -a -q --portability --verbose --append --quiet', '-f -o --format --output'),
    xargs: launcher(
      '-0 -r -t -p -x -o -i -l -e --null --no-run-if-empty --verbose --interactive --exit --open-tty --replace --show-limits',
      '-a -d -E -I -L -n -P -s --arg-file --delimiter --eof --max-args --max-procs --max-lines --max-chars --process-slot-var',
    ),
    chroot: launcher('--skip-chdir', '--userspec --groups', 1),
    flock: launcher(
      '-s -x -e -u -n -o -F --shared --exclusive --unlock --nonblock --close --no-fork --verbose',
      '-w -E --timeout --wait --conflict-exit-code',
      1,
    ),
    strace: launcher('-c -C -f -ff -q -r -t -tt -T -v -V -x -y', '-o -e -p -s -u -E -S -P -a -b -I -O -X'),
    npx: launcher('-y -q --yes --no --quiet --no-install --prefer-offline', '-p --package -w --workspace'),
    bunx: launcher('--bun', '-p --package'),
    pnpx: launcher(),
    uvx: launcher('-q --quiet --offline', '--from --with -p --python'),
  }),
)

/** Pattern for names of programs that run their words or their input, as a shell does: also `ssh`, `watch`, `at`. */
export const SHELL_LIKE_PROGRAMS =
  /^(?:(?:r?ba|da|z|k|mk|fi|c|tc|a)?sh|su|runuser|ssh|eval|trap|parallel|watch|script|at|batch|expect)$/

/** Pattern for names of programs that run code in their words, as `node -e` does. */
export const INTERPRETERS =
  /^(?:node(?:js)?|deno|bun|tsx|ts-node|(?:python|pypy|perl|ruby|php|lua|tclsh|Rscript|julia)[\d.]*|osascript|pwsh|gdb)$/

/** Pattern for names of further programs that run given files. */
const FILE_RUNNERS = /^(?:source|\.|run-parts|electron|go|dotnet)$/

/** Returns true for the name of a program that runs its words, its input, or given files. */
export function isCodeRunner(name: string): boolean {
  return SHELL_LIKE_PROGRAMS.test(name) || INTERPRETERS.test(name) || FILE_RUNNERS.test(name)
}

/** Matches variables in a text whose values do not influence what a command runs. */
export const HARMLESS_VARIABLES = /\$(?:PWD|HOME|USER|OLDPWD|TMPDIR|\?)(?![\w])/g

/** Keywords of loops and conditions. A part that begins with one does not show alone what the command does. */
export const CONTROL_KEYWORDS: ReadonlySet<string> = new Set(
  '! for while until if then else elif fi do done case esac select function coproc'.split(' '),
)

/** Builtins that change what later parts of the same command run. */
export const STATE_CHANGING_BUILTINS: ReadonlySet<string> = new Set(
  'read declare typeset local export readonly let unset mapfile readarray wait getopts hash alias unalias enable set shopt source . eval exec trap bind complete'.split(
    ' ',
  ),
)

/** Builtins that evaluate an argument again, as in `printf -v 'a[$(command)]'`. */
export const EVALUATING_BUILTINS: ReadonlySet<string> = new Set(
  'test [ [[ read declare typeset local export readonly let unset mapfile readarray wait getopts printf'.split(
    ' ',
  ),
)
