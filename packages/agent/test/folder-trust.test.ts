/** Trust in a folder: nothing of a project runs before the user has trusted it, by whatever name it is reached. */
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { echo } from '@tidemark/simulator'
import { describe, expect, it } from 'vitest'
import { readSettings } from '../src/agent/settings.ts'
import { type ChatWorld, createChatWorld, playSteps } from './chat-world.ts'

const MARK = 'echo "$PWD" >>"$HOME/ran"'

/** Hooks of a project, as its settings have them. */
const hooked = (command: string, event = 'SessionStart'): string =>
  JSON.stringify({ hooks: { [event]: [{ hooks: [{ type: 'command', command }] }] } })

async function createProject(command = MARK): Promise<ChatWorld & { ran(): number; root: string }> {
  const world = await createChatWorld(echo)
  world.write('.tidemark/settings.json', hooked(command))
  const root = dirname(world.folder)
  return { ...world, root, ran: () => (world.read('../ran') ?? '').split('\n').length - 1 }
}

/** Runs chat in another folder than that of the world. */
const chatIn = (world: ChatWorld, folder: string) => world.pipe('', { prompt: 'Hello.', cwd: folder })

describe('without trust', () => {
  it.each(['settings.json', 'settings.local.json'])(
    'no hook of %s runs, and one notice says how to trust it',
    async (name) => {
      const world = await createChatWorld(echo)
      world.write(`.tidemark/${name}`, hooked(MARK))
      const { code, out, err } = await world.run('chat', '-p', 'Hello.')
      expect([code, out, world.read('../ran')]).toEqual([0, 'Hello.\n', null])
      expect(err).toBe(
        `tidemark: The settings of this project want to set hooks, which is not applied: you have not trusted it. To see and trust it: tidemark trust '${world.folder}'\n`,
      )
    },
  )

  it('no event of the session runs one, to its end', async () => {
    const world = await createChatWorld(playSteps({ Read: { file_path: 'a.txt' } }, 'Done.'))
    const events = ['UserPromptSubmit', 'PreToolUse', 'PostToolUse', 'Stop', 'SessionStart', 'SessionEnd']
    const hooks = Object.fromEntries(events.map((event) => [event, [{ hooks: [{ command: MARK }] }]]))
    world.write('.tidemark/settings.json', JSON.stringify({ hooks }))
    world.write('a.txt', 'text')
    await world.run('chat', '-p', 'Look.')
    expect(world.read('../ran')).toBeNull()
  })

  it('no program runs that the repository of the folder names for Git; the branch is known all the same', async () => {
    let prompt = ''
    const world = await createChatWorld((request, context) => {
      prompt = JSON.stringify(request.system)
      return echo(request, context)
    })
    world.write('.git/HEAD', 'ref: refs/heads/main\n')
    world.write('.git/objects/info/packs', '')
    world.write('.git/refs/heads/main', `${'1'.repeat(40)}\n`)
    const program = `sh -c 'echo ran >>${join(dirname(world.folder), 'ran')}'`
    world.write(
      '.git/config',
      `[core]\nrepositoryformatversion = 1\nfsmonitor = "${program}"\n[extensions]\npartialClone = origin\n[protocol "ext"]\nallow = always\n[remote "origin"]\nurl = "ext::sh ${world.path('fetch.sh')}"\npromisor = true\n`,
    )
    world.write('fetch.sh', program)
    world.write('a.txt', 'text')
    expect((await world.run('chat', '-p', 'Hello.')).code).toBe(0)
    expect(world.read('../ran')).toBeNull()
    expect(prompt).toContain('Git: a repository, on main\\n')
  })

  it('the hooks of the user run all the same', async () => {
    const world = await createProject('echo theirs >>"$HOME/ran"')
    const path = join(world.root, '.config/tidemark/settings.json')
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, hooked('echo mine >>"$HOME/ran"'))
    await world.run('chat', '-p', 'Hello.')
    expect(world.read('../ran')).toBe('mine\n')
  })
})

describe('tidemark trust', () => {
  it('without a terminal shows what it is about, and trusts nothing unless --yes is given', async () => {
    const world = await createProject()
    const { code, err } = await world.run('trust', world.folder)
    expect(code).toBe(1)
    expect(err).toMatch(/want to set:\n {2}hooks: SessionStart: echo .*\n.*confirm with --yes/)
    await world.run('chat', '-p', 'Hello.')
    expect(world.ran()).toBe(0)
    expect(await world.run('trust', world.folder, '--yes')).toMatchObject({ code: 0, err: '' })
    expect((await world.run('chat', '-p', 'Hello.')).err).toBe('')
    expect(world.ran()).toBe(1)
  })

  it('lists and withdraws', async () => {
    const world = await createProject()
    await world.run('trust', world.folder, '--yes')
    expect((await world.run('trust', '--list')).out).toContain('project')
    expect((await world.run('trust', world.folder)).out).toContain('is trusted already')
    expect((await world.run('trust', '--withdraw', world.folder)).out).toContain('no longer trusted')
    const missing = { code: 2, out: '', err: 'tidemark: /no/such/folder is not a folder.\n' }
    expect(await world.run('trust', '--withdraw', '/no/such/folder')).toMatchObject(missing)
    expect((await world.run('trust', '--list')).out).toBe('')
    await world.run('chat', '-p', 'Hello.')
    expect(world.ran()).toBe(0)
  })

  it('trusts a folder whose settings want nothing; what comes later is asked about', async () => {
    const world = await createProject()
    rmSync(world.path('.tidemark'), { recursive: true })
    expect((await world.run('trust', world.folder, '--yes')).out).toMatch(
      /want to set nothing[\s\S]*is trusted/,
    )
    expect((await readSettings(world.folder, world.env)).isTrusted).toBe(true)
    world.write('.tidemark/settings.json', hooked(MARK))
    await world.run('chat', '-p', 'Hello.')
    expect(world.ran()).toBe(0)
  })

  it('names what is no folder', async () => {
    const world = await createChatWorld(echo)
    expect(await world.run('trust', world.path('none'))).toMatchObject({ code: 2 })
  })

  it('stores what only the user can read and write', async () => {
    const world = await createProject()
    await world.run('trust', world.folder, '--yes')
    const folder = join(world.home, 'trust')
    expect(statSync(folder).mode & 0o077).toBe(0)
    expect(readdirSync(folder).map((name) => statSync(join(folder, name)).mode & 0o077)).toEqual([0])
  })
})

describe('in a terminal', () => {
  it('the user is asked at the first start; with y the hooks run at once, and nobody is asked again', async () => {
    const world = await createProject()
    const { questions } = await world.answer('Hello.', 'y')
    expect(questions).toEqual([
      expect.stringMatching(/hooks: SessionStart: echo [\s\S]*Trust this folder\? \[y\/N\] $/),
    ])
    expect(world.ran()).toBe(1)
    expect((await world.answer('Again.')).questions).toEqual([])
    expect(world.ran()).toBe(2)
  })

  it.each(['n', ''])('with %j nothing runs, the notice stays, and the next start asks again', async (no) => {
    const world = await createProject()
    expect((await world.answer('Hello.', no)).err).toContain('tidemark trust')
    expect((await world.answer('Hello.', no)).questions).toHaveLength(1)
    expect(world.ran()).toBe(0)
  })

  it('the question hides nothing: no character without shape, no text behind spaces or line ends', async () => {
    const world = await createProject(`true${' '.repeat(500)}\n\u202e\u200b\u3164\u001b[2Jrm -rf x`)
    const [question = ''] = (await world.answer('Hello.', 'n')).questions
    expect(question).toContain('true [500 spaces] \\n\\u{202e}\\u{200b}\\u{3164}\\u{1b}[2Jrm -rf x')
  })
})

describe('trust belongs to content', () => {
  it('a changed command does not run until it is trusted too; what has not changed goes on', async () => {
    const world = await createProject()
    const stays = { hooks: [{ command: 'echo stays >>"$HOME/ran"' }] }
    const write = (command: string) =>
      world.write(
        '.tidemark/settings.json',
        JSON.stringify({ hooks: { SessionStart: [stays, { hooks: [{ command }] }] } }),
      )
    write('echo old >>"$HOME/ran"')
    await world.run('trust', world.folder, '--yes')
    write('echo new >>"$HOME/ran"')
    const { err } = await world.run('chat', '-p', 'Hello.')
    expect([world.read('../ran'), err]).toEqual(['stays\n', expect.stringContaining('tidemark trust')])
    expect((await world.answer('Hello.', 'n')).questions[0]).toMatch(/^(?![\s\S]*stays)[\s\S]*echo new/)
  })

  it.each([
    ['another event', hooked(MARK, 'Stop')],
    [
      'another matcher',
      JSON.stringify({ hooks: { SessionStart: [{ matcher: 'startup', hooks: [{ command: MARK }] }] } }),
    ],
    ['arguments', JSON.stringify({ hooks: { SessionStart: [{ hooks: [{ command: MARK, args: ['x'] }] }] } })],
  ])('%s asks again', async (_, settings) => {
    const world = await createProject()
    await world.run('trust', world.folder, '--yes')
    world.write('.tidemark/settings.json', settings)
    expect((await world.run('chat', '-p', 'Hello.')).err).toContain('you have not trusted it')
    expect(world.ran()).toBe(0)
  })

  it.each(['"$CLAUDE_PROJECT_DIR"/check.sh', 'sh ./check.sh', '. ./link.sh'])(
    'a file of the project that the command names is part of it: %s',
    async (command) => {
      const world = await createProject(command)
      world.write('check.sh', `#!/bin/sh\n${MARK}\n`)
      chmodSync(world.path('check.sh'), 0o755)
      symlinkSync('check.sh', world.path('link.sh'))
      await world.run('trust', world.folder, '--yes')
      await world.run('chat', '-p', 'Hello.')
      expect(world.ran()).toBe(1)
      world.write('check.sh', `#!/bin/sh\n# changed\n${MARK}\n`)
      expect((await world.run('chat', '-p', 'Hello.')).err).toContain(
        'hooks, which is not applied: it has changed since you trusted it. To see',
      )
      expect(world.ran()).toBe(1)
      const listed = (await world.run('trust', world.folder)).err
      expect(listed).toMatch(/hooks: .* \(has changed since you trusted it\)\n/)
    },
  )

  it('a changed script of package.json does not run until it is trusted', async () => {
    const world = await createProject('npm run --silent mark')
    world.write('package.json', JSON.stringify({ scripts: { mark: MARK } }))
    await world.run('trust', world.folder, '--yes')
    await world.run('chat', '-p', 'Hello.')
    expect(world.ran()).toBe(1)
    world.write('package.json', JSON.stringify({ scripts: { mark: `${MARK}; true` } }))
    const { err } = await world.run('chat', '-p', 'Hello.')
    expect([world.ran(), err]).toEqual([1, expect.stringContaining('it has changed since you trusted it')])
  })

  it('the model changes such a file only with a permission, also where edits are allowed', async () => {
    const edit = { Write: { file_path: 'check.sh', content: 'rm -rf /' } }
    const world = await createChatWorld(playSteps({ Read: { file_path: 'check.sh' } }, edit, 'Done.'))
    world.write('check.sh', 'true\n')
    world.write('.tidemark/settings.json', hooked('sh check.sh'))
    await world.run('trust', world.folder, '--yes')
    const modes = ['--permission-mode', 'accept-edits', '--allowed-tools', 'Edit', 'Edit(**)']
    expect((await world.run('chat', '-p', 'Go.', ...modes)).err).toContain('1 tool call was refused')
    expect(world.read('check.sh')).toBe('true\n')
    await world.run('chat', '-p', 'Go.', '--allowed-tools', 'Edit(check.sh)')
    expect(world.read('check.sh')).toBe('rm -rf /')
  })

  it('a file that changes while the agent works does not run as changed', async () => {
    const edit = { Bash: { command: 'echo "echo evil >>\\"$HOME/ran\\"" >check.sh' } }
    const world = await createChatWorld(playSteps(edit, 'Done.'))
    world.write('check.sh', 'echo good >>"$HOME/ran"\n')
    const hooks = {
      SessionStart: [{ hooks: [{ command: 'sh check.sh' }] }],
      Stop: [{ hooks: [{ command: 'sh check.sh' }] }],
    }
    world.write('.tidemark/settings.json', JSON.stringify({ hooks }))
    await world.run('trust', world.folder, '--yes')
    const { err } = await world.run('chat', '-p', 'Go.', '--allowed-tools', 'Bash')
    expect([world.read('../ran'), err]).toEqual([
      'good\n',
      expect.stringContaining('has changed since you trusted it'),
    ])
    expect(world.read('check.sh')).toContain('evil')
  })

  it('a file that a command only writes is no part of it, and one that it names is', async () => {
    const world = await createProject(`cat script.txt >>log.txt; ${MARK}`)
    world.write('script.txt', 'one')
    world.write('log.txt', '')
    await world.run('trust', world.folder, '--yes')
    await world.run('chat', '-p', 'Hello.')
    await world.run('chat', '-p', 'Hello.')
    expect(world.ran()).toBe(2)
    world.write('script.txt', 'two')
    await world.run('chat', '-p', 'Hello.')
    expect(world.ran()).toBe(2)
  })

  it('a damaged or foreign file about trust trusts nothing', async () => {
    const world = await createProject()
    await world.run('trust', world.folder, '--yes')
    const folder = join(world.home, 'trust')
    const [name = ''] = readdirSync(folder)
    for (const text of [
      '',
      '{',
      '[]',
      '{"format":"tidemark-trust","version":1,"folder":"/other","items":[]}',
    ]) {
      writeFileSync(join(folder, name), text)
      await world.run('chat', '-p', 'Hello.')
    }
    expect(world.ran()).toBe(0)
  })
})

describe('trust belongs to the real path', () => {
  async function createTrusted() {
    const world = await createProject()
    await world.run('trust', world.folder, '--yes')
    return world
  }

  it('a copy elsewhere, and a folder below, are not trusted', async () => {
    const world = await createTrusted()
    cpSync(world.folder, join(world.root, 'copy'), { recursive: true })
    cpSync(world.path('.tidemark'), world.path('sub/.tidemark'), { recursive: true })
    await chatIn(world, join(world.root, 'copy'))
    await chatIn(world, world.path('sub'))
    expect(world.ran()).toBe(0)
  })

  it('a link or a way through .. to the trusted folder is the trusted folder', async () => {
    const world = await createTrusted()
    symlinkSync(world.folder, join(world.root, 'link'))
    mkdirSync(world.path('sub'))
    await chatIn(world, join(world.root, 'link'))
    await chatIn(world, `${world.folder}/sub/..`)
    expect(world.ran()).toBe(2)
  })

  it('a link in the trusted folder does not carry trust to where it leads, nor does ..', async () => {
    const world = await createTrusted()
    cpSync(world.folder, join(world.root, 'evil'), { recursive: true })
    symlinkSync(join(world.root, 'evil'), world.path('inside'))
    await chatIn(world, world.path('inside'))
    await chatIn(world, `${world.folder}/../evil`)
    expect(world.ran()).toBe(0)
  })

  it('another folder put in the place of the trusted one by a link is not trusted', async () => {
    const world = await createTrusted()
    renameSync(world.folder, join(world.root, 'moved'))
    symlinkSync(join(world.root, 'moved'), world.folder)
    await chatIn(world, world.folder)
    expect(world.ran()).toBe(0)
  })

  it('settings behind a link count by their content', async () => {
    const world = await createTrusted()
    rmSync(world.path('.tidemark'), { recursive: true })
    mkdirSync(join(world.root, 'elsewhere'))
    writeFileSync(join(world.root, 'elsewhere/settings.json'), hooked('echo evil >>"$HOME/ran"'))
    symlinkSync(join(world.root, 'elsewhere'), world.path('.tidemark'))
    await world.run('chat', '-p', 'Hello.')
    expect(world.ran()).toBe(0)
  })

  // On a disk that does not tell such names apart, both are one folder.
  it.each([
    ['case', 'Work', 'work'],
    ['composed and decomposed letters', 'caf\u00e9', 'cafe\u0301'],
    ['a space without width', 'app', 'app\u200b'],
    ['letters that look alike', 'paypal', 'p\u0430ypal'],
    ['a trailing blank', 'app', 'app '],
  ])('names that differ only by %s are different folders', async (_, trusted, other) => {
    const world = await createProject()
    const [first, second] = [join(world.root, trusted), join(world.root, other)]
    for (const folder of [first, second]) cpSync(world.folder, folder, { recursive: true })
    if (statSync(first).ino === statSync(second).ino) return
    await world.run('trust', first, '--yes')
    await chatIn(world, second)
    expect(world.ran()).toBe(0)
    await chatIn(world, first)
    expect(world.ran()).toBe(1)
  })

  it('trustedFolders of the user trusts everything below, whatever its content', async () => {
    const world = await createProject()
    const path = join(world.root, '.config/tidemark/settings.json')
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, JSON.stringify({ trustedFolders: [world.root] }))
    expect((await world.run('chat', '-p', 'Hello.')).err).toBe('')
    expect(world.ran()).toBe(1)
  })
})
