/** The attempts on rules and paths, through the code that decides about tool calls. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { decidePermission, NO_RULES, type PermissionMode } from '../../src/agent/permissions.ts'
import { describeToolAccess } from '../../src/tools/tool-access.ts'
import { FOLDER, HOME, listAttempts, USUAL_RULES } from './attack.ts'
import { COMMAND_ATTACKS } from './command-attacks.ts'
import { OPTION_ATTACKS } from './option-attacks.ts'
import { ORDINARY_WORK } from './ordinary-work.ts'
import { PATH_ATTACKS } from './path-attacks.ts'
import { SPELLING_ATTACKS } from './spelling-attacks.ts'

describe('a model that was talked over', () => {
  const classes = [
    ...OPTION_ATTACKS,
    ...COMMAND_ATTACKS,
    ...SPELLING_ATTACKS,
    ...ORDINARY_WORK,
    ...PATH_ATTACKS,
  ]
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

  it.each([
    'cd evil/L && cd .. && git status',
    'cd evil/L/.. && git status',
    'cd evil/L/../ && git diff',
    'cd ./evil/L/.. && git status',
    'cd evil && cd L && cd .. && git status',
    'cd evil && cd L/.. && git status',
    'cd evil/L && cd ../top && git status',
    'cd evil/L && cd ./.. && git log',
    'cd top/../evil/L && cd .. && git status',
    'cd evil/./L && cd .. && npm test',
    'cd "evil/L" && cd .. && git status',
    "cd 'evil'/L && cd '..' && git status",
    'cd evil\\/L && cd .. && git status',
    'cd L2 && cd ../.. && git status',
    'cd L2 && npm test',
    'cd evil/L && git status',
    'cd none/.. && git status',
    'cd none/../evil && git status',
    'cd evil && cd - && git status',
    'cd evil && cd ~- && git status',
    'cd -P evil/L && cd .. && git status',
    'cd -L evil/L && cd .. && git status',
    'cd -- evil && git status',
    'pushd evil && git status',
    'pushd evil; popd; git status',
    'builtin cd evil && git status',
    'command cd evil; git status',
    'chdir evil; git status',
    'CDPATH=evil cd top && git status',
    'cd evil; git status',
    'cd top && ls; git log',
    'cd top && ls || git log',
    'cd top && ls & git log',
    'ls && cd evil && git status',
    'cd evil && git status',
    'cd / && git status',
    'cd .. && git status',
    'cd && git status',
    'cd evil &&\ncd L && cd .. && git status',
  ])('a rule for the working directory does not hold where a link or a failing cd leads: %s', (command) => {
    const folder = createFolder()
    for (const name of ['evil', 'top', 'deep/er']) mkdirSync(join(folder, name), { recursive: true })
    symlinkSync('../top', join(folder, 'evil/L'))
    symlinkSync('deep/er', join(folder, 'L2'))
    const allow = [...USUAL_RULES, 'Bash(cd top && git status:*)']
    const run = (text: string, start: string) =>
      decidePermission(
        'Bash',
        { kind: 'execute', paths: [], command: text, folder: start },
        {
          ...{ rules: { ...NO_RULES, allow }, mode: 'default', folder, home: join(folder, 'home') },
        },
      ).decision
    expect(run(command, folder)).toBe('ask')
    expect(run('cd top && git status', folder)).toBe('allow')
    expect(run('cd .. && git status', join(folder, 'evil'))).toBe('allow')
    for (const text of [
      'cd ../none/.. && ls; npm test',
      'cd .. && ls; npm test',
      'cd ../none && ls; npm test',
    ])
      expect(run(text, join(folder, 'evil'))).toBe('ask')
  })

  it('a rule for a folder does not hold in a link of that name, which can be made to lead elsewhere', () => {
    const folder = createFolder()
    mkdirSync(join(folder, 'real'))
    symlinkSync('real', join(folder, 'link'))
    symlinkSync(tmpdir(), join(folder, 'out'))
    const allow = ['real', 'link', 'out', 'link/..'].map((name) => `Bash(cd ${name} && npm test:*)`)
    const context = {
      rules: { ...NO_RULES, allow },
      mode: 'default',
      folder,
      home: join(folder, 'home'),
    } as const
    const run = (command: string) =>
      decidePermission('Bash', { kind: 'execute', paths: [], command }, context).decision
    expect(run('cd real && npm test')).toBe('allow')
    for (const name of ['link', 'out', 'link/..', 'real/../link'])
      expect([name, run(`cd ${name} && npm test -- --run`)]).toEqual([name, 'ask'])
  })

  it('a command that is too long to be read is asked about, though a rule would fit it', () => {
    const run = (length: number) => decide(`ls ${'x'.repeat(length)}`, USUAL_RULES).decision
    expect([run(9_000), run(12_000)]).toEqual(['allow', 'ask'])
  })

  it('a command that no shell could be started with is refused at once, in every mode', () => {
    const decideLong = (command: string, mode: PermissionMode) =>
      decidePermission(
        'Bash',
        { kind: 'execute', paths: [], command },
        { rules: { ...NO_RULES, allow: ['Bash'] }, mode, folder: FOLDER, home: HOME },
      )
    for (const mode of ['default', 'allow-all'] as const) {
      expect(decideLong(`echo ${'é'.repeat(60_000)}`, mode)).toMatchObject({ decision: 'deny' })
      expect(decideLong(`echo ${'x'.repeat(4_000_000)}`, mode).reason).toMatch(/120,000 bytes/)
      expect(decideLong(`echo ${'x'.repeat(119_000)}`, mode).decision).toBe('allow')
    }
  })

  it('a link that appears after a decision protects the place it leads to at the next one', () => {
    const folder = createFolder()
    for (const name of ['packages/a', 'editor', '.husky']) mkdirSync(join(folder, name), { recursive: true })
    // Folders that have not changed for a while are not read again.
    execFileSync('sleep', ['0.2'])
    expect([write(folder, 'editor/x'), write(folder, 'tools/pre.sh')]).toEqual(['allow', 'allow'])
    symlinkSync('../../editor', join(folder, 'packages/a/.vscode'))
    symlinkSync('../tools/pre.sh', join(folder, '.husky/pre-commit'))
    expect([write(folder, 'editor/x'), write(folder, 'tools/pre.sh')]).toEqual(['ask', 'ask'])
    rmSync(join(folder, 'packages/a/.vscode'))
    expect(write(folder, 'editor/x')).toBe('allow')
  })

  it('a path that is too long for any file is refused at once', () => {
    const folder = createFolder()
    for (const path of ['a/'.repeat(100_000), 'a'.repeat(100_000), `.git/${'a/'.repeat(5_000)}x`])
      expect(write(folder, `${path}x`)).toBe('deny')
    expect(write(folder, `${'a/'.repeat(100)}x`)).toBe('allow')
  })

  it('what the configuration of Git names is asked about, and a rule of the user excepts it', () => {
    const folder = createFolder()
    for (const name of ['.git', 'tools', 'home/.config/git', 'sub'])
      mkdirSync(join(folder, name), { recursive: true })
    for (const name of ['tools/pager', 'tools/filter', 'tools/free']) writeFileSync(join(folder, name), '')
    writeFileSync(
      join(folder, '.git/config'),
      [
        '[core]\n\thooksPath = .githooks # own\n  pager = ./tools/pager -x',
        '[include] path = ../shared.gitconfig',
        '[includeIf "onbranch:main"]\n\tpath = "../other.gitconfig"',
        '[filter "x"]\n\tclean = "sh ./tools/filter %f"',
        '[remote "origin"]\n\turl = https://h/x\n[branch "main"]\n\tmerge = refs/heads/main',
      ].join('\n'),
    )
    writeFileSync(join(folder, 'shared.gitconfig'), '[CORE]\nHooksPath=sub/hooks')
    const named = [
      ...['.githooks/pre-commit', '.githooks', 'tools/pager', 'tools/filter', 'shared.gitconfig'],
      ...['other.gitconfig', 'sub/hooks/pre-push', './x/../.githooks/post-merge'],
    ]
    for (const path of named) expect([path, write(folder, path)]).toEqual([path, 'ask'])
    for (const path of ['tools/free', 'githooks/pre-commit', 'sub/x', 'main'])
      expect([path, write(folder, path)]).toEqual([path, 'allow'])
    const ownRules = ['Edit(.githooks/**)']
    const excepted = decidePermission(
      'Write',
      describeToolAccess('Write', { file_path: '.githooks/x' }, folder),
      {
        ...{
          rules: { ...NO_RULES, allow: ownRules },
          ownRules,
          mode: 'default',
          folder,
          home: join(folder, 'home'),
        },
      },
    )
    expect(excepted.decision).toBe('allow')
  })

  it('a folder of hooks that holds the whole project protects the names of hooks in it', () => {
    const folder = createFolder()
    mkdirSync(join(folder, '.git'))
    writeFileSync(join(folder, '.git/config'), '[core]\nhooksPath = .\n')
    expect(write(folder, 'pre-commit')).toBe('ask')
    expect(write(folder, 'a.ts')).toBe('allow')
  })

  it('the configuration of a linked work tree, and of the repository above the folder, counts', () => {
    const folder = createFolder()
    for (const name of ['main/.git/worktrees/w', 'w/sub']) mkdirSync(join(folder, name), { recursive: true })
    writeFileSync(join(folder, 'w/.git'), 'gitdir: ../main/.git/worktrees/w\n')
    writeFileSync(join(folder, 'main/.git/worktrees/w/commondir'), '../..\n')
    writeFileSync(join(folder, 'main/.git/config'), '[core]\n\thooksPath = sub/hooks\n')
    expect(write(join(folder, 'w'), 'sub/hooks/pre-commit')).toBe('ask')
    expect(write(join(folder, 'w/sub'), 'hooks/pre-commit')).toBe('ask')
    expect(write(join(folder, 'w/sub'), 'a')).toBe('allow')
  })

  it('links in protected folders, and protected names deeper in the project, lead to protected places', () => {
    const folder = createFolder()
    for (const name of ['.git', '.husky', '.vscode', 'tools', 'editor', 'packages/a/.claude', 'home/.ssh'])
      mkdirSync(join(folder, name), { recursive: true })
    for (const name of ['tools/pre.sh', 'tools/rc', 'tools/free', 'tools/key'])
      writeFileSync(join(folder, name), '')
    symlinkSync('../tools/hooks', join(folder, '.git/hooks'))
    symlinkSync('../tools/pre.sh', join(folder, '.husky/pre-commit'))
    symlinkSync('../../editor', join(folder, 'packages/a/.vscode'))
    symlinkSync('../../../tools/rc', join(folder, 'packages/a/.claude/settings.json'))
    symlinkSync('../../tools/key', join(folder, 'home/.ssh/authorized_keys'))
    for (const path of [
      'tools/hooks/pre-commit',
      'tools/pre.sh',
      'editor/tasks.json',
      'tools/rc',
      'tools/key',
    ])
      expect([path, write(folder, path)]).toEqual([path, 'ask'])
    expect(write(folder, 'tools/free')).toBe('allow')
    // A link to the whole project would protect all of it.
    symlinkSync('.', join(folder, '.cursor'))
    expect(write(folder, 'tools/free')).toBe('allow')
  })
})

it('a decision takes a time that grows no faster than the command', () => {
  const deny = ['Bash(rm:*)', 'Bash(git push:*)']
  const rules = { ...NO_RULES, allow: [...USUAL_RULES, 'Bash(curl:*)', 'Bash(nice:*)'], deny }
  const hostile = [
    'nice -x '.repeat(16),
    'nice -x '.repeat(1_000),
    'sudo -Z env -S '.repeat(600),
    'curl '.repeat(24_000),
    'curl '.repeat(1_900),
    'ls;'.repeat(3_000),
    '"'.repeat(9_999),
    '$('.repeat(4_999),
    '`'.repeat(9_999),
    'cd a && '.repeat(1_200),
    `git ${'-c a=b '.repeat(1_300)}`,
    `sh -c ${"'".repeat(9_000)}`,
    'eval '.repeat(1_900),
    'bash -c '.repeat(1_200),
    `ls ${'*'.repeat(9_000)}`,
    `tool ${'[*'.repeat(4_000)}`,
    `${'A=1 '.repeat(2_400)}ls`,
    `sed -e ${'s/a/b/;'.repeat(1_400)}`,
    '\\\n'.repeat(4_000),
    'x'.repeat(1_000_000),
    `ls${' '.repeat(200_000)}x`,
    `${'\n\t '.repeat(60_000)}x`,
  ]
  for (const command of hostile) {
    const started = process.cpuUsage()
    const { decision } = decidePermission(
      'Bash',
      { kind: 'execute', paths: [], command },
      {
        ...{ rules, mode: 'default', folder: FOLDER, home: HOME },
      },
    )
    expect([command.slice(0, 20), decision === 'allow' && command.length > 10_000]).toEqual([
      command.slice(0, 20),
      false,
    ])
    // Far above what it takes: the process counts its garbage collector too.
    expect([command.slice(0, 20), process.cpuUsage(started).user < 10_000_000]).toEqual([
      command.slice(0, 20),
      true,
    ])
  }
})
