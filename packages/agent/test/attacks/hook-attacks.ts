/** Commands of hooks, each with a file of the project that it runs: whoever changes the file decides what runs. */
import { listLines } from './attack.ts'

/** The files of the project in which the commands run. */
export const HOOK_PROJECT: Readonly<Record<string, string>> = {
  'package.json': JSON.stringify({
    main: 'lib/start.js',
    bin: { x: './lib/bin.js' },
    scripts: { lint: 'node hooks/check', all: 'sh hooks/*.sh' },
  }),
  'index.js': '',
  'lib/start.js': '',
  'lib/bin.js': '',
  'hooks/check.js': '',
  'hooks/check.sh': '',
  'hooks/check.py': '',
  'hooks/check.rb': '',
  'hooks/check.pl': '',
  'hooks/other.mjs': '',
  'hooks/index.js': '',
  'hooks/__main__.py': '',
  'hooks/main.go': '',
  'hooks/Makefile': '',
  'hooks/deep/check.sh': '',
  'pkg/package.json': JSON.stringify({ main: './start' }),
  'pkg/start.js': '',
  'src/index.ts': '',
  'src/a.ts': '',
  Makefile: '',
  justfile: '',
  Rakefile: '',
  'Taskfile.yml': '',
  'noxfile.py': '',
  'deno.json': '',
  '.pre-commit-config.yaml': '',
  'lefthook.yml': '',
  'composer.json': '',
  'pom.xml': '',
  'build.gradle': '',
}

const variable = (name: string): string => ['$', `{${name}}`].join('')

/** `command => file`. */
export const HOOK_COMMANDS: readonly (readonly [command: string, file: string])[] = [
  ...listLines(`
    node hooks/check => hooks/check.js
    node ./hooks/check => hooks/check.js
    node "hooks/check" => hooks/check.js
    node 'hooks/check' --all => hooks/check.js
    node --no-warnings hooks/check => hooks/check.js
    node -r ./hooks/check x.js => hooks/check.js
    node --require ./hooks/check x.js => hooks/check.js
    node --require=./hooks/check x.js => hooks/check.js
    node --import ./hooks/other.mjs x.js => hooks/other.mjs
    /usr/bin/node hooks/check => hooks/check.js
    /usr/bin/env node hooks/check => hooks/check.js
    env node hooks/check => hooks/check.js
    timeout 10 node hooks/check => hooks/check.js
    nice -n 5 node hooks/check => hooks/check.js
    NODE_OPTIONS=--require=./hooks/check node x => hooks/check.js
    node "$CLAUDE_PROJECT_DIR/hooks/check" => hooks/check.js
    node "$CLAUDE_PROJECT_DIR"/hooks/check => hooks/check.js
    node $PWD/hooks/check => hooks/check.js
    node $(pwd)/hooks/check => hooks/check.js
    cd hooks && node check => hooks/check.js
    cd hooks; node ./check => hooks/check.js
    (cd hooks && node check) => hooks/check.js
    pushd hooks && node check => hooks/check.js
    D=hooks; node $D/check => hooks/check.js
    N=check; node hooks/$N => hooks/check.js
    N=check; node "hooks/$N.js" => hooks/check.js
    bun hooks/check => hooks/check.js
    bun run hooks/check => hooks/check.js
    tsx hooks/check => hooks/check.js
    deno run hooks/check.js => hooks/check.js
    python3 hooks/check.py => hooks/check.py
    ruby hooks/check.rb => hooks/check.rb
    perl hooks/check.pl => hooks/check.pl
    ruby -Ihooks -rcheck -e 1 => hooks/check.rb
    node . => index.js
    node . => package.json
    node . => lib/start.js
    node ./ => index.js
    node "$CLAUDE_PROJECT_DIR" => index.js
    node ./hooks => hooks/index.js
    node hooks => hooks/index.js
    node hooks/ => hooks/index.js
    node ./pkg => pkg/start.js
    node pkg => pkg/package.json
    node -r ./pkg x.js => pkg/start.js
    npx ./pkg => pkg/start.js
    npx . => lib/bin.js
    bunx ./pkg => pkg/start.js
    python3 hooks => hooks/__main__.py
    python hooks/ => hooks/__main__.py
    go run ./hooks => hooks/main.go
    sh hooks/*.sh => hooks/check.sh
    sh ./hooks/*.sh => hooks/check.sh
    sh hooks/check.* => hooks/check.sh
    sh hooks/chec?.sh => hooks/check.sh
    sh hooks/[c]heck.sh => hooks/check.sh
    sh */check.sh => hooks/check.sh
    sh hooks/{check,other}.sh => hooks/check.sh
    sh hooks/c{heck,x}.sh => hooks/check.sh
    bash -c 'sh hooks/*.sh' => hooks/check.sh
    bash -c "for f in hooks/*.sh; do sh $f; done" => hooks/check.sh
    for f in hooks/*.sh; do sh $f; done => hooks/check.sh
    for f in hooks/*; do $f; done => hooks/check.sh
    for f in hooks/*.js; do node "$f"; done => hooks/check.js
    for f in check; do sh hooks/$f.sh; done => hooks/check.sh
    ./hooks/*.sh => hooks/check.sh
    hooks/check.[s]h => hooks/check.sh
    . hooks/*.sh => hooks/check.sh
    source hooks/check.* => hooks/check.sh
    cat hooks/*.sh | sh => hooks/check.sh
    cat hooks/check.sh | bash => hooks/check.sh
    run-parts hooks => hooks/check.sh
    run-parts ./hooks => hooks/check.sh
    run-parts --regex '.*' hooks => hooks/check.js
    find hooks -name '*.sh' -exec sh {} ';' => hooks/check.sh
    find hooks -type f -exec {} ';' => hooks/check.sh
    find hooks -name '*.py' | xargs python3 => hooks/check.py
    find hooks -name '*.sh' | xargs -n1 sh => hooks/deep/check.sh
    ls hooks | xargs -I% sh hooks/% => hooks/check.sh
    ls hooks/*.sh | while read f; do sh $f; done => hooks/check.sh
    parallel sh ::: hooks/*.sh => hooks/check.sh
    node hooks/*.mjs => hooks/other.mjs
    node "$CLAUDE_PROJECT_DIR"/hooks/*.mjs => hooks/other.mjs
    sh "$CLAUDE_PROJECT_DIR"/hooks/*.sh => hooks/check.sh
    sh hooks/**/check.sh => hooks/deep/check.sh
    PATH=hooks:$PATH check.sh => hooks/check.sh
    PATH="$PWD/hooks:$PATH" check.sh => hooks/check.sh
    make -C hooks => hooks/Makefile
    make -Chooks => hooks/Makefile
    make -f hooks/Makefile => hooks/Makefile
    make --directory=hooks => hooks/Makefile
    gmake => Makefile
    just => justfile
    just check => justfile
    rake => Rakefile
    bundle exec rake => Rakefile
    task check => Taskfile.yml
    nox => noxfile.py
    uvx nox => noxfile.py
    deno task check => deno.json
    pre-commit run => .pre-commit-config.yaml
    npx lefthook run x => lefthook.yml
    composer check => composer.json
    mvn verify => pom.xml
    gradle check => build.gradle
    npm run lint => hooks/check.js
    npm run all => hooks/check.sh
    npm run-script lint => package.json
    pnpm lint => hooks/check.js
    yarn lint => hooks/check.js
    bun run lint => hooks/check.js
    node --run lint => hooks/check.js
    npm --prefix . run lint => hooks/check.js
    npm run lint --silent => hooks/check.js
    sh -c 'npm run lint' => hooks/check.js
    eval 'node hooks/check' => hooks/check.js
    eval "node hooks/check" => hooks/check.js
    true && node hooks/check || exit 2 => hooks/check.js
    if true; then node hooks/check; fi => hooks/check.js
    node hooks/check >&2 || exit 2 => hooks/check.js
    node hooks/check < /dev/null => hooks/check.js
    node < hooks/check.js => hooks/check.js
    bash <(cat hooks/check.sh) => hooks/check.sh
    bash -s < hooks/check.sh => hooks/check.sh
    bash --init-file hooks/check.sh -i => hooks/check.sh
    BASH_ENV=hooks/check.sh bash -c true => hooks/check.sh
    ENV=./hooks/check.sh sh -i => hooks/check.sh
    PYTHONSTARTUP=hooks/check.py python3 -i => hooks/check.py
    PYTHONPATH=hooks python3 -m check => hooks/check.py
    python3 -m hooks.check => hooks/check.py
    python3 -m hooks => hooks/__main__.py
  `).map((line) => {
    const at = line.lastIndexOf(' => ')
    return [line.slice(0, at), line.slice(at + 4)] as const
  }),
  [`node ${variable('CLAUDE_PROJECT_DIR')}/hooks/check`, 'hooks/check.js'],
  [`node "${variable('CLAUDE_PROJECT_DIR:-.')}/hooks/check"`, 'hooks/check.js'],
  [`N=check; node hooks/${variable('N')}.js`, 'hooks/check.js'],
]

/** Commands that check the files of the project: changing those is the agent's work. */
export const CHECKING_COMMANDS: readonly string[] = listLines(`
  npx eslint src
  npx eslint .
  eslint "src/**/*.ts"
  npx prettier --check src/*.ts
  prettier --check .
  tsc -p src
  npx tsc --noEmit
  pytest src
  biome check src
  cargo test
  go vet ./...
  node scripts/lint.mjs src
  find src -name '*.ts' | xargs npx eslint
  git diff --name-only | xargs npx prettier --check
  npx vitest run src
  cd src && npx eslint .
  true >> src/a.ts
  true 2>src/a.ts
  true > src/index.ts
`)
