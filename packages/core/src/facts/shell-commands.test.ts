import { describe, expect, it } from 'vitest'
import {
  isReadOnlyCommand,
  isReadOnlyOrTemporaryCommand,
  listChangesToKnownFiles,
  listPrintedFileLines,
  normalizeCommand,
} from './shell-commands.ts'

describe('the normal form of a command', () => {
  it.each([
    ['npm test', 'npm test'],
    ['cd /a/b && npm test', 'npm test'],
    ['cd "/a b" && cd c && npm test', 'npm test'],
    ['npm test 2>&1 | tail -20', 'npm test 2>&1'],
    ['npm test | head -n 5 | tail -3', 'npm test'],
    ['  npm test \n', 'npm test'],
    ['cd /a', 'cd /a'],
    ['npm test | grep tail', 'npm test | grep tail'],
  ])('%j is %j', (command, plain) => {
    expect(normalizeCommand(command)).toBe(plain)
  })
})

describe('a command that only looks', () => {
  it.each([
    'cat build.log',
    'rg -n "a|b && c" src 2>/dev/null | head -20',
    'git -C /repo log --oneline && git status',
    'gh run view 12 --log-failed 2>&1 | tail -5',
    'cd src; ls -la',
    "sed -n '1,20p' a.ts | sort | uniq -c",
  ])('is one: %s', (command) => {
    expect([isReadOnlyCommand(command), isReadOnlyOrTemporaryCommand(command)]).toEqual([true, true])
  })

  it.each([
    'npm test | tail',
    'cat a > b',
    "sed -i 's/a/b/' c",
    'find . -delete',
    'cat list | xargs rm',
    'git branch new',
    'ls && npm test',
    'cat-file x',
  ])('is none: %s', (command) => {
    expect(isReadOnlyCommand(command)).toBe(false)
  })
})

describe('what a command does to known files', () => {
  const known = ['/repo/src/a.ts', 'src/b.ts', '/repo/docs/c.md']
  const changes = (command: string): readonly string[] =>
    listChangesToKnownFiles(command, known, '/repo').map(({ kind, path, to }) =>
      [kind, path, ...(to === null ? [] : [to])].join(' '),
    )

  it.each<[string, readonly string[]]>([
    ['rm -rf src', ['removed /repo/src/a.ts', 'removed src/b.ts']],
    ["cd docs; rm 'c.md'", ['removed /repo/docs/c.md']],
    ['git rm --cached src/a.ts', []],
    ['git rm -n src/a.ts', []],
    ['git mv --dry-run src/a.ts docs/', []],
    ['test -d src || rm -rf src', []],
    ['npm test || true; rm src/b.ts', ['removed src/b.ts']],
    ['git commit -m "done"', known.map((path) => `committed ${path}`)],
    ['mv src/b.ts docs/', ['moved src/b.ts /repo/docs/b.ts']],
    ['mv src lib', ['moved /repo/src/a.ts /repo/lib/a.ts', 'moved src/b.ts /repo/lib/b.ts']],
    ['git checkout -- src/a.ts', ['undone /repo/src/a.ts']],
    ['git checkout HEAD~1 src/a.ts docs', ['undone /repo/src/a.ts', 'undone /repo/docs/c.md']],
    ['git checkout -b docs', []],
    ['git checkout main', []],
    ['git restore --staged src/a.ts', []],
    ['git restore --source=HEAD~2 src/b.ts', ['undone src/b.ts']],
    ['git reset HEAD src/a.ts', []],
    ['git reset --hard', known.map((path) => `perhaps-undone ${path}`)],
    ['npm test && git stash', known.map((path) => `perhaps-stashed ${path}`)],
    ['git stash push -- src/a.ts', ['stashed /repo/src/a.ts']],
    ['git stash pop', known.map((path) => `returned ${path}`)],
    ['git stash list', []],
    ['git revert HEAD', known.map((path) => `perhaps-undone ${path}`)],
    ['echo "rm src/a.ts"', []],
    ["cat <<'END'\nrm src/a.ts\nEND", []],
    ['npm run rm src/a.ts', []],
  ])('%s', (command, expected) => {
    expect(changes(command)).toEqual(expected)
  })
})

describe('the file that a command prints', () => {
  const print = (command: string): string | null => {
    const files = listPrintedFileLines(command, '/repo').map(
      ({ path, from, to, isNumbered, heading }) =>
        `${heading === null ? '' : `${heading}: `}${path} ${from}-${to ?? 'end'}${isNumbered ? ' numbered' : ''}`,
    )
    return files.length === 0 ? null : files.join(', ')
  }

  it.each([
    ['cat src/a.ts', '/repo/src/a.ts 1-end'],
    ['cat -n src/a.ts', '/repo/src/a.ts 1-end numbered'],
    ["bash -lc 'cat a.ts'", null],
    ["sed -n '20,40p' a.ts", '/repo/a.ts 20-40'],
    ['sed -n 7p a.ts', '/repo/a.ts 7-7'],
    ["sed -n '20,$p' 'a b.ts'", '/repo/a b.ts 20-end'],
    ['cd sub && sed -n 1,9p a.ts 2>/dev/null', '/repo/sub/a.ts 1-9'],
    ['nl -ba a.ts | sed -n 5,9p', '/repo/a.ts 5-9 numbered'],
    ['head -n 30 a.ts', '/repo/a.ts 1-30'],
    ['head -30 a.ts | sed -n 20,50p', '/repo/a.ts 20-30'],
    ['tail -n +20 /etc/hosts', '/etc/hosts 20-end'],
    ['cat a.ts; echo ---; cat b.ts', '/repo/a.ts 1-end, ---: /repo/b.ts 1-end'],
    [
      "cd sub && echo '== a' && head -5 a && echo '== b' && cat b",
      '== a: /repo/sub/a 1-5, == b: /repo/sub/b 1-end',
    ],
    ["sed -n 1,9p a && printf '\\n--\\n' && nl -ba b | sed -n 2,4p", '/repo/a 1-9, --: /repo/b 2-4 numbered'],
    ["cat a && printf '\n--\n' && cat b", '/repo/a 1-end, --: /repo/b 1-end'],
    ['nl -ba a | sed -n 1,9p && nl -ba b', '/repo/a 1-9 numbered, /repo/b 1-end numbered'],
  ])('%s', (command, expected) => {
    expect(print(command)).toBe(expected)
  })

  it.each([
    ...['cat a.ts b.ts', 'cat *.ts', 'cat $FILE', 'cat a.ts > b.ts', 'cat', 'tail -20 a.ts', 'nl a.ts'],
    ...['cat a.ts | grep x', 'cat a.ts; cat b.ts', 'git diff && cat a.ts', "sed -n '/x/p' a.ts"],
    ...["sed -i 's/a/b/' a.ts", "cat <<'END'\nx\nEND", 'cat a.ts | nl -ba', 'echo a && cat a && echo b'],
    ...[
      'cat a; echo; cat b',
      'cat a; echo "$X"; cat b',
      'cat a; cd b; cat c',
      'nl -ba a; cat b',
      'echo a | cat',
    ],
    ...['cat a; git diff; cat b', 'cat a; echo x; echo y; cat b', "printf '%s' a; cat b", 'cat a && wc -l a'],
  ])('is none for %s', (command) => {
    expect(print(command)).toBe(null)
  })
})
