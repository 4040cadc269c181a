/** Git in a folder that came with its own configuration: what it names to run needs trust, and usual settings do not. */
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { listGitTrustItems } from './git-programs.ts'
import { decidePermission, NO_RULES, type PermissionMode } from './permissions.ts'

function createFolder(files: Readonly<Record<string, string>>): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-git-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
    if (text.startsWith('#!')) chmodSync(join(folder, name), 0o755)
  }
  return folder
}

const DEEP = 'c/d/e/f/g'

const CORE =
  '[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n'

const HOSTILE: readonly string[] = [
  '[core]\n\tfsmonitor = ./evil',
  '[core] fsmonitor = ./evil',
  '[CORE]\nFsMonitor=./evil # comment',
  '[core]\n\tfsmonitor = "./evil true"',
  '[core]\n\tfsmonitor = \\\n./evil',
  '[user][core]fsmonitor=./evil',
  '\ufeff[core]\r\n\tfsmonitor = ./evil\r\n',
  '[core]\n\tpager = ./evil',
  '[core]\n\teditor = ./evil',
  '[core]\n\tsshCommand = ./evil',
  '[core]\n\taskPass = ./evil',
  '[core]\n\tgitProxy = ./evil',
  '[core]\n\talternateRefsCommand = ./evil',
  '[core]\n\tworktree = /users/ann',
  '[sequence]\n\teditor = ./evil',
  '[diff]\n\texternal = ./evil',
  '[diff "x"]\n\tcommand = ./evil',
  '[diff "x"]\n\ttextconv = ./evil',
  '[diff.x]\n\ttextconv = ./evil',
  '[diff "a \\"b]"]\n\ttextconv = ./evil',
  '[filter "x"]\n\tclean = ./evil',
  '[filter "x"]\n\tprocess = ./evil',
  '[filter "lfs"]\n\tclean = ./evil -- %f',
  '[filter "lfs"]\n\tprocess = "git-lfs filter-process; ./evil"',
  '[merge "x"]\n\tdriver = ./evil',
  '[mergetool "x"]\n\tcmd = ./evil',
  '[difftool "x"]\n\tcmd = ./evil',
  '[pager]\n\tstatus = ./evil',
  '[alias]\n\tst = !./evil',
  '[alias]\n\tst = -c core.fsmonitor=./evil status',
  '[credential]\n\thelper = !./evil',
  '[credential "https://h"]\n\thelper = /tmp/evil',
  '[gpg]\n\tprogram = ./evil',
  '[gpg "ssh"]\n\tprogram = ./evil',
  '[remote "origin"]\n\tuploadpack = ./evil',
  '[remote "origin"]\n\tvcs = evil',
  '[remote "origin"]\n\turl = ext::sh -c ./evil',
  '[url "ext::sh -c ./evil "]\n\tinsteadOf = https://',
  '[branch "main"]\n\tremote = ext::./evil',
  '[branch "main"]\n\tmergeOptions = -s evil',
  '[protocol "ext"]\n\tallow = always',
  '[interactive]\n\tdiffFilter = ./evil',
  '[submodule "x"]\n\tupdate = !./evil',
  '[trailer "x"]\n\tcommand = ./evil',
  '[init]\n\ttemplateDir = ./evil',
  '[hook "x"]\n\tcommand = ./evil\n\tevent = pre-commit',
  '[lfs "customtransfer.x"]\n\tpath = ./evil',
  '[gc]\n\trecentObjectsHook = ./evil',
  '[http]\n\tcookieFile = /users/ann/.bashrc\n\tsaveCookies = true',
  '[some-new-section]\n\tprogram = ./evil',
  '[include]\n\tpath = ../shared.gitconfig',
  '[includeIf "gitdir:**"]\n\tpath = ../shared.gitconfig',
]

const HARMLESS: readonly string[] = [
  '',
  CORE,
  `${CORE}\tignorecase = true\n\tprecomposeunicode = true\n\tfsmonitor = true\n\tuntrackedCache = true`,
  '[remote "origin"]\n\turl = git@github.com:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*',
  '[remote "origin"]\n\turl = https://github.com/a/b\n\tgh-resolved = base\n\tpartialclonefilter = blob:none',
  '[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n\trebase = true\n\tvscode-merge-base = origin/main',
  '[user]\n\tname = "A; B # C"\n\temail = a@b.c ; mine\n[commit]\n\tgpgsign = true',
  '[pull]\n\trebase\n[push]\n\tautoSetupRemote = true\n# a comment\n; another\n[color "status"] added = green',
  '[submodule "x"]\n\tactive = true\n\turl = https://h/x\n\tupdate = checkout',
  '[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n\tprocess = git-lfs filter-process\n\trequired = true',
  '[credential]\n\thelper = osxkeychain\n[pager]\n\tdiff = false\n[extensions]\n\tworktreeConfig = true',
]

const MANY = 1_200

function listFiles(write: (at: number) => readonly [string, string]): Readonly<Record<string, string>> {
  return Object.fromEntries(Array.from({ length: MANY }, (_, at) => write(at)))
}

const FILES = { evil: '#!/bin/sh\ntouch MARK\n', 'shared.gitconfig': '[core]\n\tpager = ./evil\n' }

function decide(folder: string, command: string, allow: readonly string[], mode: PermissionMode = 'default') {
  return decidePermission(
    'Bash',
    { kind: 'execute', paths: [], command },
    {
      ...{ rules: { ...NO_RULES, allow }, mode, folder, home: '/users/ann' },
      findGitProgram: (starts) => (starts.flatMap(listGitTrustItems).length === 0 ? null : 'a program'),
    },
  )
}

describe('the configuration of a repository', () => {
  it.each(HOSTILE)('that may name a program needs trust: %j', (text) => {
    const folder = createFolder({ ...FILES, '.git/config': text, '.git/HEAD': 'ref: refs/heads/main\n' })
    expect(listGitTrustItems(folder).length).toBeGreaterThan(0)
    expect(listGitTrustItems(join(folder, 'sub')).length).toBeGreaterThan(0)
  })

  it.each(HARMLESS)('as tools write it needs none: %j', (text) => {
    const folder = createFolder({ ...FILES, '.git/config': text })
    expect(listGitTrustItems(folder)).toEqual([])
  })

  it.each([
    { name: 'hooks', files: { '.git/hooks/post-index-change': '#!/bin/sh\n' } },
    {
      name: 'a folder of hooks',
      files: { '.git/config': '[core]\nhooksPath = .githooks', '.githooks/pre-commit': 'x' },
    },
    {
      name: 'hooks of husky',
      files: { '.git/config': '[core]\nhooksPath = .husky/_', '.husky/pre-commit': 'npm test' },
    },
    { name: 'a work tree of its own', files: { '.git/config.worktree': '[core]\n\tfsmonitor = ./evil' } },
    { name: 'a submodule', files: { '.git/modules/x/config': '[core]\n\tfsmonitor = ./evil' } },
    {
      name: 'a repository inside',
      files: { '.git/config': '', 'a/b/.git/config': '[core]\n\tfsmonitor = ./evil' },
    },
    {
      name: 'a linked work tree',
      files: { '.git': 'gitdir: x/y\n', 'x/y/commondir': '..\n', 'x/config': '[core]\npager=./evil' },
    },
    {
      name: 'a repository without a work tree',
      files: { HEAD: '', 'objects/x': '', 'refs/x': '', config: '[core]\npager=./evil' },
    },
    {
      name: 'a file that is included twice',
      files: { '.git/config': '[include]path=../a', a: '[include]path=b', b: '[core]pager=x' },
    },
    {
      name: 'a configuration that is too large to be read',
      files: { '.git/config': `#${'x'.repeat(1_100_000)}` },
    },
    {
      name: 'a folder that is shared',
      files: { '.git/config': '', '.git/commondir': '../x\n', 'x/config': '[core]\npager=./evil' },
    },
    {
      name: 'a shared folder of a repository without a work tree',
      files: { HEAD: '', commondir: 'x\n', 'x/config': '[core]\npager=./evil' },
    },
    {
      name: 'a rebase that is under way',
      files: { '.git/rebase-merge/git-rebase-todo': 'pick 1 a\nexec ./evil\n' },
    },
    {
      name: 'the last of many included files',
      files: listFiles((at) => [
        at === 0 ? '.git/config' : `.git/${at}`,
        at === MANY - 1 ? '[core]pager=x' : `[include]path=${at + 1}`,
      ]),
    },
    {
      name: 'a hook behind many other files',
      files: listFiles((at) => [
        `.git/hooks/${at === MANY - 1 ? 'post-index-change' : `a-${at}`}`,
        '#!/bin/sh\n',
      ]),
    },
  ])('counts in $name', ({ files }) => {
    expect(listGitTrustItems(createFolder({ ...FILES, ...files })).length).toBeGreaterThan(0)
  })

  it('as `git init` makes it, with its samples of hooks, needs no trust', () => {
    const folder = createFolder({})
    execFileSync('git', ['init', '-q'], { cwd: folder, env: { PATH: process.env.PATH, HOME: folder } })
    expect(listGitTrustItems(folder)).toEqual([])
  })

  it.each(['2', '4', 'shared'])(
    'counts in a repository of the index, however deep it is (index: %s)',
    (version) => {
      const folder = createFolder({ 'a/b.txt': 'x', [`${DEEP}/x.txt`]: 'x' })
      const env = {
        PATH: process.env.PATH,
        HOME: folder,
        GIT_AUTHOR_NAME: 'a',
        GIT_COMMITTER_NAME: 'a',
        EMAIL: 'a@b',
      }
      const git = (cwd: string, ...words: string[]) => execFileSync('git', words, { cwd, env, stdio: 'pipe' })
      const inner = join(folder, DEEP)
      for (const at of [inner, folder]) {
        git(at, 'init', '-q')
        if (version !== 'shared') git(at, 'config', 'index.version', version)
        git(at, 'add', '.')
        git(at, 'commit', '-qm', 'x')
        if (version === 'shared') git(at, 'update-index', '--split-index')
      }
      expect(listGitTrustItems(folder)).toEqual([])
      git(inner, 'config', 'core.fsmonitor', './evil')
      expect(listGitTrustItems(folder)).toMatchObject([{ parts: ['core.fsmonitor', './evil'] }])
    },
  )

  it('is trusted with the content of the files that it names', () => {
    const config = '[core]\n\tfsmonitor = ./evil\n'
    const [one, other] = ['#!/bin/sh\ntrue\n', '#!/bin/sh\ntouch MARK\n'].map((evil) =>
      listGitTrustItems(createFolder({ evil, '.git/config': config })),
    )
    expect(one).toEqual([
      {
        setting: 'git',
        parts: ['core.fsmonitor', './evil'],
        files: [{ path: 'evil', hash: expect.stringMatching(/^[0-9a-f]{64}$/) }],
      },
    ])
    expect(other).not.toEqual(one)
  })
})

describe('a hostile configuration', () => {
  it.each([
    { name: 'blanks', text: `[core]\n\tpager = a${' '.repeat(900_000)}b` },
    { name: 'comments', text: `[core]\n\tpager = a${' #'.repeat(400_000)}` },
    { name: 'headers', text: '[a]'.repeat(300_000) },
    { name: 'open headers', text: `[a "${'\\"'.repeat(400_000)}` },
    { name: 'words', text: `[core]\n\tpager = ${'a '.repeat(400_000)}` },
    { name: 'lines', text: '[core]\n'.repeat(120_000) },
  ])('of many $name takes no time to speak of', ({ text }) => {
    const folder = createFolder({ '.git/config': text })
    const started = process.cpuUsage()
    listGitTrustItems(folder)
    // Far above what it takes: the process counts its garbage collector too.
    expect(process.cpuUsage(started).user).toBeLessThan(10_000_000)
  })
})

describe('a rule for Git', () => {
  const folder = () => createFolder({ ...FILES, '.git/config': '[core]\n\tfsmonitor = ./evil\n' })

  it.each([
    { command: 'git status', allow: 'Bash(git status)' },
    { command: 'git status --short', allow: 'Bash(git status:*)' },
    { command: 'ls && git diff --stat', allow: 'Bash(git *)' },
    { command: '/usr/bin/git log', allow: 'Bash(/usr/bin/git log:*)' },
    { command: 'cd a/b/c/d/e && git status', allow: 'Bash(cd a/b/c/d/e && git status:*)' },
    { command: 'gi\\\nt status', allow: 'Bash(git status:*)' },
    { command: "g'i't status", allow: 'Bash(* status)' },
    { command: 'npm test | xargs git add', allow: 'Bash(npm test | xargs git add)' },
  ])('does not let it run what a repository names: $command', ({ command, allow }) => {
    const { decision, reason, suggestions } = decide(folder(), command, [allow, 'Bash(ls:*)'])
    expect([decision, suggestions]).toEqual(['ask', []])
    expect(reason).toContain('tidemark trust')
  })

  it('does not hold in a repository to which the command goes', () => {
    const deep = createFolder({
      '.git/config': CORE,
      'a/b/c/d/e/.git/config': '[core]\n\tfsmonitor = ./evil\n',
    })
    const allow = ['Bash(git status:*)', 'Bash(cd a/b/c/d/e && git status:*)']
    expect(decide(deep, 'cd a/b/c/d/e && git status', allow).decision).toBe('ask')
    expect(decide(deep, 'git status', allow).decision).toBe('allow')
  })

  it('holds where the repository names nothing, and for commands without Git', () => {
    const plain = createFolder({ '.git/config': CORE })
    expect(decide(plain, 'git status', ['Bash(git status)']).decision).toBe('allow')
    expect(decide(folder(), 'ls -la', ['Bash(ls:*)']).decision).toBe('allow')
  })

  it('is not needed where every command is allowed', () => {
    expect(decide(folder(), 'git status', ['Bash']).decision).toBe('allow')
    expect(decide(folder(), 'git status', [], 'allow-all').decision).toBe('allow')
  })
})
