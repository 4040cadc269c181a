/** The attempts on rules and paths, through the code that decides about tool calls. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { decidePermission, NO_RULES } from '../../src/agent/permissions.ts'
import { describeToolAccess } from '../../src/tools/tool-access.ts'
import { FOLDER, HOME, listAttempts, USUAL_RULES } from './attack.ts'
import { COMMAND_ATTACKS } from './command-attacks.ts'
import { OPTION_ATTACKS } from './option-attacks.ts'
import { PATH_ATTACKS } from './path-attacks.ts'

describe('a model that was talked over', () => {
  const classes = [...OPTION_ATTACKS, ...COMMAND_ATTACKS, ...PATH_ATTACKS]
  it.each(classes.map((attack) => [attack.name, attack.promise, attack] as const))(
    '%s: %s',
    (_, __, attack) => {
      const expected = [attack.expected].flat()
      const attempts = listAttempts(attack)
      expect(attempts.filter(({ outcome }) => !expected.includes(outcome))).toEqual([])
      expect(attempts.length).toBeGreaterThan(5)
    },
  )
})

const decide = (command: string, allow: readonly string[]) =>
  decidePermission(
    'Bash',
    { kind: 'execute', paths: [], command },
    { rules: { ...NO_RULES, allow }, mode: 'default', folder: FOLDER, home: HOME },
  )

it.each([
  ['git diff --stat', 'git diff --no-index --output=/users/ann/.bashrc a b'],
  ['git fetch origin', 'git fetch --upload-pack=./evil .'],
  ['git push origin main', 'git push --receive-pack=./evil origin'],
  ['git grep x', 'git grep -O./evil x'],
  ['git log -3', 'git log --output=x'],
  ['git show HEAD', 'git show --output=x'],
  ['git clone https://h/x', 'git clone -u ./evil https://h/x'],
  ['git ls-remote origin', 'git ls-remote --upload-pack=./evil origin'],
  ['git branch --show-current', 'git branch -D main'],
  ['git tag -l', 'git tag -d v1'],
  ['git config --get user.name', 'git config core.pager ./evil'],
  ['git remote -v', 'git remote add x ext::./evil'],
  ['git stash list', 'git stash drop'],
  ['git clean -n', 'git clean -fd'],
  ['git reset HEAD', 'git reset --hard'],
  ['tar tf x.tar', 'tar xf x.tar --to-command=./evil'],
  ['tar xf x.tar', 'tar xf x.tar --checkpoint-action=exec=./evil'],
  ['sort x', 'sort -o x y'],
  ['curl https://h/x', 'curl -o /users/ann/.bashrc https://h'],
  ['curl -sL https://h/x', 'curl -K evil https://h'],
  ['zip a.zip b', 'zip -T -TT ./evil a.zip b'],
  ['gcc a.c', 'gcc -wrapper ./evil a.c'],
  ['wget https://h/x', 'wget -O x https://h'],
  ['vim x', 'vim -c !./evil'],
  ['find . -name x', 'find . -delete'],
  ['sed -n 1,5p x', 'sed -i s/a/b/ x'],
  ["awk '{print $1}' x", 'awk \'BEGIN{system("x")}\''],
  ['rm x', 'rm y'],
  ['cp a b', 'cp a .git/config'],
  ['mv a b', 'mv a .git/config'],
  ['chmod +x a', 'chmod +x b'],
  ['tee a', 'tee .git/config'],
  ['dd if=a of=b', 'dd if=a of=/users/ann/.bashrc'],
  ['ln -s a b', 'ln -s / c'],
  ['python3 a.py', 'python3 -c 1'],
  ['node a.js', 'node -e 1'],
  ['bash a.sh', 'bash -c x'],
  ['docker ps', 'docker run -v /:/h x'],
  ['npm install left-pad', 'npm install evil'],
  ['npm test', 'npm test --script-shell=./evil'],
  ['npm run build', 'npm run evil'],
  ['make test', 'make evil'],
  ['make test', 'make test SHELL=./evil'],
  ['cargo test', 'cargo test --config x'],
  ['pytest', 'pytest -p evil'],
  ['xargs ls', 'xargs rm'],
  ['env', 'env ./evil'],
  ['sudo ls', 'sudo ./evil'],
  ['cd sub && npm test', 'npm test'],
  ['cd sub && npm test', 'cd other && npm test'],
])('what is suggested for %s allows that, and not %s', (harmless, attack) => {
  const { decision, suggestions } = decide(harmless, [])
  expect(decision).toBe('ask')
  expect(decide(harmless, suggestions).decision).toBe('allow')
  expect(decide(attack, suggestions).decision).toBe('ask')
})

describe('a random command under ten usual rules', () => {
  const pick = (...texts: readonly string[]) => fc.constantFrom(...texts)
  const begins = USUAL_RULES.map((rule) => rule.slice('Bash('.length, -':*)'.length))
  const allowed = pick(...begins)
  const program = fc.oneof(
    { weight: 4, arbitrary: allowed },
    pick('touch x', './evil', 'rm', 'sh', 'cd sub', 'git', 'npm'),
  )
  const before = fc.oneof(
    { weight: 6, arbitrary: fc.constant('') },
    pick(
      'sudo -n ',
      'env -i ',
      'timeout 5 ',
      'nice ',
      'A=1 ',
      'xargs ',
      '>x ',
      '2>&1 ',
      '! ',
      'command ',
      'PATH=. ',
    ),
  )
  const harmless = pick(
    '--stat',
    '-n 5',
    '-la',
    '-m a',
    '--',
    'src',
    "'a b'",
    '"a;b"',
    "'$(./evil)'",
    '2>&1',
    '-name a',
    '--oneline',
  )
  const option = fc.oneof(
    { weight: 3, arbitrary: harmless },
    pick(
      '--output=x',
      '--outp=x',
      '-o x',
      '-exec ./evil \\;',
      '--script-shell=./evil',
      '-fprint x',
      '-c ./evil',
      '-O./evil',
    ),
    pick(
      '*',
      '$X',
      '"$X"',
      '>x',
      '> x',
      '>>x',
      '2>x',
      '&>x',
      '"$(./evil)"',
      '`./evil`',
      '<(./evil)',
      '--ext-diff',
    ),
    pick(
      '--output=x'.replace('=', '\\='),
      '"--output=x"',
      "--out'put'=x",
      '-\\\n-output=x',
      '#',
      '\\#',
      '$',
      '\\',
    ),
  )
  const separator = pick(';', '&&', '||', '|', '&', '\n', ' && ', ' | ', '#\n')
  const part = fc
    .tuple(before, program, fc.array(option, { maxLength: 3 }))
    .map(([launcher, name, options]) => `${launcher}${[name, ...options].join(' ')}`)
  const command = fc
    .tuple(part, fc.array(fc.tuple(separator, part), { maxLength: 2 }))
    .map(([first, rest]) => first + rest.map(([by, next]) => `${by}${next}`).join(''))

  it('is asked about if one of its parts does more than the rules say', () => {
    const bad = pick(
      '--output=x',
      '"--output=x"',
      "--out'put'=x",
      '--outp=x',
      '--ext-diff',
      '--script-shell=./evil',
      '-fprint x',
      '-O./evil',
      '-exec ./evil',
      '*',
      '$X',
      '"$X"',
    )
    const worse = pick('>x', '> x', '2>x', '&>x', '"$(./evil)"', '`./evil`', '<(./evil)', '{a,b}')
    const launcher = pick(
      'sudo -n ',
      'env -i ',
      'timeout -k 1 5 ',
      'A=1 ',
      'xargs ',
      '>x ',
      '! ',
      'command ',
      'PATH=. ',
    )
    const strict = pick(...begins.filter((begin) => /git|npm|find/.test(begin)))
    const words = fc.array(harmless, { maxLength: 2 }).map((list) => ['', ...list].join(' '))
    const wrong = fc.oneof(
      fc
        .tuple(strict, words, bad, words)
        .map(([name, some, option, more]) => `${name}${some} ${option}${more}`),
      fc
        .tuple(allowed, words, worse, words)
        .map(([name, some, option, more]) => `${name}${some} ${option}${more}`),
      fc.tuple(launcher, allowed, words).map(([before, name, some]) => `${before}${name}${some}`),
      fc
        .tuple(pick('touch x', './evil', 'rm a', 'sh', 'git', 'npm'), words)
        .map(([name, some]) => `${name}${some}`),
    )
    const right = fc.tuple(allowed, words).map(([name, some]) => `${name}${some}`)
    const joined = fc
      .tuple(
        fc.array(fc.tuple(right, separator), { maxLength: 2 }),
        wrong,
        fc.array(fc.tuple(separator, right), { maxLength: 2 }),
      )
      .map(([first, middle, last]) => `${first.flat().join('')}${middle}${last.flat().join('')}`)
    fc.assert(
      fc.property(joined, (text) => {
        expect(decide(text, USUAL_RULES).decision).toBe('ask')
      }),
      { numRuns: 15_000 },
    )
  })

  // Starts a shell for each command that is allowed.
  it.runIf(process.env.TIDEMARK_RUN_SHARE === '1')(
    'that runs unasked starts no program and writes no file',
    () => {
      const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-attack-')))
      onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))
      const work = join(folder, 'work')
      mkdirSync(join(work, 'sub'), { recursive: true })
      mkdirSync(join(folder, 'bin'))
      const evil = `#!/bin/sh\ntouch ${join(folder, 'MARK')}\n`
      for (const name of ['work/evil', 'work/ls', 'work/git', 'work/sub/evil'])
        writeFileSync(join(folder, name), evil, { mode: 0o755 })
      // A name that the pattern `*` turns into an option.
      for (const name of ['a', '--output=x', '-fprintx']) writeFileSync(join(work, name), '')
      const npm = '#!/bin/sh\nfor a; do case "$a" in --script-shell=*) ./evil;; esac; done\n'
      writeFileSync(join(folder, 'bin/npm'), npm, { mode: 0o755 })
      const env = { PATH: `${join(folder, 'bin')}:${process.env.PATH}`, HOME: folder, X: '--output=x' }
      spawnSync('git', ['init', '-q'], { cwd: work, env })
      let count = 0
      fc.assert(
        fc.property(command, (text) => {
          if (decide(text, USUAL_RULES).decision !== 'allow') return
          count += 1
          spawnSync('bash', ['-c', text], { cwd: work, env, stdio: 'ignore', timeout: 10_000 })
          expect(['MARK', 'work/x', 'work/sub/x'].filter((name) => existsSync(join(folder, name)))).toEqual(
            [],
          )
        }),
        { numRuns: 5_000 },
      )
      expect(count).toBeGreaterThan(100)
    },
    120_000,
  )
})

describe('on the disk', () => {
  const createFolder = (): string => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-attack-')))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))
    return folder
  }
  const write = (folder: string, path: string) =>
    decidePermission('Write', describeToolAccess('Write', { file_path: path }, folder), {
      ...{ rules: NO_RULES, mode: 'allow-all', folder, home: join(folder, 'home') },
    }).decision

  it('the names that together make a folder a bare repository are asked about, whichever comes last', () => {
    const names = ['HEAD', 'objects/x', 'refs/heads/main']
    for (const last of names) {
      const folder = createFolder()
      for (const name of names.filter((each) => each !== last)) {
        mkdirSync(join(folder, 'sub', name, '..'), { recursive: true })
        writeFileSync(join(folder, 'sub', name), '')
      }
      expect(write(folder, `sub/${last}`)).toBe('ask')
      writeFileSync(join(folder, 'sub', 'HEAD'), '')
      mkdirSync(join(folder, 'sub', 'objects'), { recursive: true })
      expect(write(folder, 'sub/config')).toBe('ask')
      expect(write(folder, 'sub/hooks/post-checkout')).toBe('ask')
      expect(write(folder, 'config')).toBe('allow')
    }
  })

  it('a link to a protected place, and the place that a protected name links to, are asked about', () => {
    const folder = createFolder()
    for (const name of ['.git/hooks', 'editor', 'home']) mkdirSync(join(folder, name), { recursive: true })
    symlinkSync('.git/hooks', join(folder, 'scripts'))
    symlinkSync('editor', join(folder, '.vscode'))
    symlinkSync('../dotfiles', join(folder, 'home/.config'))
    mkdirSync(join(folder, 'dotfiles/fish'), { recursive: true })
    symlinkSync('../dotfiles/rc', join(folder, 'home/.bashrc'))
    for (const path of [
      'scripts/pre-commit',
      'editor/tasks.json',
      '.vscode/tasks.json',
      'dotfiles/rc',
      'home/.bashrc',
    ])
      expect([path, write(folder, path)]).toEqual([path, 'ask'])
    expect(write(folder, 'editors/tasks.json')).toBe('allow')
  })
})
