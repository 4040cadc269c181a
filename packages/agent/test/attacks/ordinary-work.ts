/** Commands of a coding agent at work that no rule must catch. */
import { type AttackClass, listLines, USUAL_RULES } from './attack.ts'

/** What a rule for another command must not catch. */
const NOT_DENIED: AttackClass = {
  name: 'ordinary work beside rules that deny',
  promise: 'runs: no attack',
  expected: 'runs',
  allow: ['Bash'],
  deny: ['Bash(rm:*)', 'Bash(git push:*)', 'Bash(sudo:*)'],
  mode: 'allow-all',
  commands: listLines(`
    ls -la
    git rm --cached x
    git status
    git log --oneline --grep push
    git stash
    git commit -m "rm the old push"
    git -C sub status
    git --no-pager diff
    git fetch origin
    git checkout -b x
    grep -rn "rm -rf" src
    echo rm
    cat rm.txt
    npm test
    npm run build
    npm install left-pad
    npx vitest run
    npx tsc --noEmit
    node build.js
    node --test
    node scripts/build.mjs --watch
    python3 -m pytest
    python3 manage.py migrate
    bash scripts/deploy.sh
    sh ./x.sh a b
    bash -c 'npm test'
    make build
    cargo build --release
    go test ./...
    docker ps -a
    docker compose up -d
    sed -n 1,5p x
    sed 's/a/b/' x
    awk '{print $1}' x
    find . -name '*.ts'
    cp a b
    mv a b
    mkdir -p x/y
    touch x
    chmod +x x.sh
    curl -s https://h/x
    timeout 60 npm test
    time npm test
    ls $HOME
    tool --dir $PWD/x
    tsc -p .
    cat a | head -5
    tool src/*.ts
    cd src && ls; echo $?
  `),
}

/** What was asked about without need. */
const NEEDLESS: AttackClass = {
  name: 'ordinary work in other spellings under usual rules',
  promise: 'runs: no attack',
  expected: 'runs',
  allow: [
    ...USUAL_RULES,
    ...'sed wc sort uniq awk curl head tail tar git,show git,branch git,fetch git,clone xxd git,stash git,reflog git,init'
      .split(' ')
      .map((name) => `Bash(${name.replace(',', ' ')}:*)`),
  ],
  commands: listLines(`
    git --no-pager diff
    git --no-pager log --oneline -5
    git -P status
    git --no-pager show HEAD
    npm test; echo $?
    npm test; echo "exit code: $?"
    npm test && echo ok
    npm test && echo ok || echo failed
    echo "== status ==" && git status
    git status; echo ---; git diff --stat
    npm run build || true
    sed -e 1p x
    sed -n -e 1,5p x
    sed -ne 1,5p x
    sed -e s/a/b/ -e s/c/d/g x
    sed --expression=s/a/b/ x
    wc -l < x
    sort < x | uniq -c
    grep foo < x.txt
    cat < x
    uniq -f 1 x
    uniq -c
    awk -F , '{print $1}' x
    awk -F: '{print $1}' x
    timeout 60 npm test
    timeout 2m npm run build
    timeout 5.5 git --no-pager diff
    timeout 30s npm test 2>&1 | tail -20
    curl -s --max-time 5 https://h/x
    curl -sL -m 5 http://h/x
    curl localhost:3000/health
    curl -sf http://127.0.0.1:8080/
    tar tf x.tar
    tar -tzf x.tgz
    git fetch --depth 1 origin
    git clone --depth 1 https://h/x/y.git
    git clone --branch main https://h/x
    cd src && ls; echo $?
    cd src && cat a.ts | head -5
    find . -name x | wc -l; echo done
    xxd x | head -3
    git diff -U5 HEAD
    git log -n 5 -S word
    git log -L 1,5:x
    sort -k 2 -t , x
    git stash
    git stash push -m work x
    git stash pop
    git stash list
    git reflog
    git reflog -n 5
    git reflog show main
    git init -q -b main
  `),
}

export const ORDINARY_WORK: readonly AttackClass[] = [NOT_DENIED, NEEDLESS]
