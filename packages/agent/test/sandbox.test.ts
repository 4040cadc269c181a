/**
 * `tidemark chat` with the sandbox on, and a model that means harm: what its commands cannot do. The tests run where `bwrap`
 * confines; elsewhere they are skipped, and one line says so.
 */
import { execFileSync, spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openSandbox } from '../src/sandbox/sandbox.ts'
import { createChatWorld, playSteps } from './chat-world.ts'
import { bash, openSandboxWorld as openWorld, sandboxProblem as problem } from './sandbox-world.ts'

/** Creates a folder outside the temporary one of the system, where the home of the tests is: that is another one in the sandbox. */
function createOutsideFolder(): string {
  const place = join(import.meta.dirname, '../../../node_modules/.cache')
  mkdirSync(place, { recursive: true })
  const folder = mkdtempSync(join(realpathSync(place), 'tidemark-sandbox-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

describe.skipIf(problem !== null)('a command in the sandbox', () => {
  it('runs unasked, writes the working folder and the temporary one, and keeps both for the next command', async () => {
    const { runCommands, read } = await openWorld([
      bash('echo one > a.txt && mkdir -p src/deep && echo two > /tmp/b.txt && cd src/deep'),
      bash('pwd; cat ../../a.txt /tmp/b.txt; echo "$TMPDIR"; mktemp >/dev/null && echo made'),
    ])
    const results = await runCommands()
    expect(results[0]).toBe('(no output)')
    expect(results[1]).toMatch(/\/src\/deep\none\ntwo\n\/tmp\nmade$/)
    expect([read('a.txt'), existsSync('/tmp/b.txt')]).toEqual(['one\n', false])
  })

  it.each([
    ['a start-up file of the shell', 'echo evil >> ~/.bashrc'],
    ['a file beside the working folder', 'echo evil > ../evil'],
    [
      'a new file in the home',
      'echo evil > ~/.zshenv; mkdir -p ~/.config/autostart && echo evil > ~/.config/autostart/x',
    ],
    ['settings of the agent', 'echo "{}" > ~/.config/tidemark/settings.json'],
    ['the data of the agent', 'mkdir -p "$(dirname ~)/data"; echo evil > ~/data/evil'],
    [
      'a Git hook',
      'echo evil > .git/hooks/pre-commit; echo evil >> .git/config; echo ../evil > .git/commondir',
    ],
    [
      'a Git hook, by another folder of this name',
      'mv .git old && mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit',
    ],
    [
      'a Git hook of a repository below',
      'echo evil > vendor/lib/.git/hooks/x; mv vendor v2; rm -rf vendor/lib/.git',
    ],
    ['the settings of the project', 'echo "{}" > .tidemark/settings.json; rm -rf .tidemark; mv .tidemark t2'],
    ['a hook script', 'echo evil > scripts/check.sh; mv scripts s2; rm -rf scripts'],
    ['a hook script, by a link to it', 'ln scripts/check.sh other && echo evil > other'],
    ['a file that a rule denies to edit', 'echo evil > docs/kept.md; mv docs d2'],
  ])('cannot change %s', async (_, command) => {
    const rules = { permissions: { deny: ['Edit(docs/kept.md)'] } }
    const hooks = { Stop: [{ hooks: [{ type: 'command', command: './scripts/check.sh' }] }] }
    const world = await openWorld([bash(command)], true, { ...rules, hooks })
    const { folder, write, writeHome } = world
    writeHome('.bashrc', 'mine')
    execFileSync('git', ['init', '-q', folder])
    write('vendor/lib/.git/hooks/old', 'mine')
    write('.tidemark/settings.json', '{"permissions":{"ask":["WebFetch"]}}')
    write('scripts/check.sh', '#!/bin/sh\n')
    execFileSync('chmod', ['+x', world.path('scripts/check.sh')])
    write('docs/kept.md', 'mine')
    const list = (): string =>
      execFileSync('sh', ['-c', 'find . -path ./data -prune -o -type f -exec cksum {} + | sort'], {
        cwd: world.env.HOME,
        encoding: 'utf8',
      })
    const before = list()
    await world.runCommands()
    expect(list()).toBe(before)
  })

  it('cannot write anywhere else on the machine', async () => {
    const folder = createOutsideFolder()
    const world = await openWorld([bash(`echo evil > ${folder}/evil`)])
    // A checkout in the temporary folder of the system is not there at all.
    expect(await world.runCommands()).toEqual([expect.stringMatching(/Read-only file system|No such file/)])
    expect(existsSync(join(folder, 'evil'))).toBe(false)
  })

  it.each([
    ['SSH keys', 'cat ~/.ssh/id_rsa; ls -a ~/.ssh'],
    ['keys of a cloud', 'cat ~/.aws/credentials'],
    ['the settings of the agent, which may hold keys', 'cat ~/.config/tidemark/settings.json'],
    ['a file that a rule denies to read', 'cat .env; cp .env copy; cat copy; cat sub/../.env'],
    ['a file that a rule denies to read, by a link', 'cat link; ln .env hard; cat hard; mv .env e2; cat e2'],
    ['a folder that a rule denies to read', 'cat private/*; cat ~/notes/*'],
    ['the file of another session', 'find "$HOME/data" -type f -exec cat {} +'],
    ['the environment of another process', 'cat /proc/[0-9]*/environ; ps aux'],
  ])('cannot read %s', async (_, command) => {
    const deny = ['Read(.env)', 'Read(private/**)', 'Read(~/notes/**)']
    const env = { MARK: 'readable-by-commands' }
    const world = await openWorld([bash(`${command}; echo "$MARK"`)], true, { permissions: { deny }, env })
    for (const name of ['.ssh/id_rsa', '.aws/credentials', 'notes/a', 'data/sessions/other.jsonl'])
      world.writeHome(name, 'the-secret')
    const settings = readFileSync(join(world.env.HOME ?? '', '.config/tidemark/settings.json'), 'utf8')
    world.writeHome(
      '.config/tidemark/settings.json',
      settings.replace('"MARK"', '"NOTE":"the-secret","MARK"'),
    )
    world.write('.env', 'the-secret')
    world.write('private/a', 'the-secret')
    symlinkSync('.env', world.path('link'))
    const other = spawn('sleep', ['60'], { env: { ...process.env, KEY: 'the-secret' } })
    onTestFinished(() => void other.kill())
    const [result] = await world.runCommands()
    const shown = result?.replaceAll('NOTE=the-secret', '')
    expect([shown?.includes('the-secret'), result?.includes('readable-by-commands')]).toEqual([false, true])
  })

  it('reaches no network and no socket of a service on this machine', async () => {
    const socket = join(mkdtempSync(join(tmpdir(), 'tidemark-socket-')), 'service.sock')
    let connections = 0
    const count = () => {
      connections += 1
    }
    const [service, server] = [createServer(count).listen(socket), createServer(count).listen(0, '127.0.0.1')]
    onTestFinished(() => {
      service.close()
      server.close()
      rmSync(dirname(socket), { recursive: true })
    })
    const world = await openWorld([bash('node connect.js; echo done')])
    const { port } = server.address() as { port: number }
    world.write('service.sock.txt', '')
    world.write(
      'connect.js',
      `const net = require('node:net')
      for (const to of [{ path: 'near.sock' }, { port: ${port}, host: '127.0.0.1' }])
        net.connect(to).on('error', (error) => console.log(error.code)).on('connect', () => process.exit())`,
    )
    const near = createServer(count).listen(world.path('near.sock'))
    onTestFinished(() => void near.close())
    const [result] = await world.runCommands()
    expect([result, connections]).toEqual([expect.stringMatching(/EPERM\nECONNREFUSED\ndone$/), 0])
  })

  it('reaches the network if the settings say so, and still no socket of a service', async () => {
    let connections = 0
    const server = createServer((connection) => {
      connections += 1
      connection.end()
    }).listen(0, '127.0.0.1')
    onTestFinished(() => void server.close())
    await new Promise((resolve) => server.once('listening', resolve))
    const { port } = server.address() as { port: number }
    const world = await openWorld([bash('node connect.js')], { network: true })
    world.write(
      'connect.js',
      `require('node:net').connect(${port}, '127.0.0.1').on('connect', () => console.log('connected')).resume()`,
    )
    expect([await world.runCommands(), connections]).toEqual([['connected'], 1])
  })

  it.each([
    ['a repository', 'git init -q . && echo evil > .git/hooks/pre-commit', '.git'],
    ['a bare repository', 'git init -q --bare sub && echo "[core]" >> sub/config', 'sub/HEAD'],
    ['settings of an editor', 'mkdir -p deep/.vscode && echo evil > deep/.vscode/tasks.json', 'deep/.vscode'],
    ['servers for agents', 'echo evil > .mcp.json', '.mcp.json'],
  ])('that creates %s has it renamed, and reads so', async (_, command, name) => {
    const world = await openWorld([bash(command)])
    const [result] = await world.runCommands()
    expect(result).toContain(`does not let commands create ${name}; it was renamed to ${name}.from-sandbox`)
    expect([existsSync(world.path(name)), existsSync(world.path(`${name}.from-sandbox`))]).toEqual([
      false,
      true,
    ])
  })

  it('in the background has what it created renamed at the latest before the next command', async () => {
    const create = 'mkdir .husky; echo evil > .husky/pre-commit; touch made; sleep 60'
    const steps = playSteps(bash(create, { run_in_background: true }), bash('cat .husky/pre-commit'), 'Done.')
    // The next command is called when the file is there.
    const world = await openWorld(async (request, context) => {
      while (context.turn === 1 && world.read('made') === null)
        await new Promise((next) => setTimeout(next, 20))
      return await steps(request, context)
    })
    const results = await world.runCommands()
    expect(results[1]).toMatch(/No such file/)
    expect(existsSync(world.path('.husky'))).toBe(false)
  })

  it('leaves no process behind, and one that fails is told of the way out', async () => {
    const world = await openWorld([bash('(setsid sleep 1; mkdir .git) & echo failed; exit 3')])
    const [result] = await world.runCommands()
    expect(result).toMatch(/^Exit code: 3\nOutput:\nfailed\n\[The command ran in the sandbox.*outside: true/)
    await new Promise((resolve) => setTimeout(resolve, 1_200))
    expect(existsSync(world.path('.git'))).toBe(false)
  })

  it('cannot make the agent read a hidden file for it', async () => {
    // The agent reads from a file in which folder a command ended.
    const find = "trap -p EXIT | grep -oE '/[^ ]*/cwd-[0-9a-f-]+'"
    const world = await openWorld([
      bash(`file=$(${find}); trap 'ln -sf ~/.ssh/id_rsa "$file"; ls -l "$file"' EXIT`),
    ])
    world.writeHome('.ssh/id_rsa', 'the-secret')
    const [result] = await world.runCommands()
    expect([result?.includes(' -> '), result?.includes('the-secret')]).toEqual([true, false])
  })
})

describe.skipIf(problem !== null)('a command outside the sandbox', () => {
  it('is refused where nobody can be asked, whatever is allowed', async () => {
    const world = await openWorld([bash('touch outside', { outside: true })])
    for (const more of [
      ['--allowed-tools', 'Bash'],
      ['--permission-mode', 'allow-all'],
    ]) {
      await world.run('chat', '-p', 'Work.', ...more)
      expect(world.lastResults().join()).toMatch(/It runs outside the sandbox\. Nobody can be asked/)
    }
    expect(world.read('outside')).toBeNull()
  })

  it('runs after the user has agreed, and the user sees that it is outside', async () => {
    const world = await openWorld([bash('echo x > ../outside', { outside: true })])
    const { err, questions } = await world.answer('Work.', 'y')
    expect([questions.length, err]).toEqual([1, expect.stringContaining('It runs outside the sandbox.')])
    expect(existsSync(join(dirname(world.folder), 'outside'))).toBe(true)
  })

  it('is denied by a rule all the same, and a rule that asks asks about one inside', async () => {
    const rules = { permissions: { deny: ['Bash(rm:*)'], ask: ['Bash(git push:*)'] } }
    const world = await openWorld([bash('rm -rf x'), bash('git push')], true, rules)
    const results = await world.runCommands()
    expect(results[0]).toMatch(/The rule Bash\(rm:\*\) forbids it/)
    expect(results[1]).toMatch(/The rule Bash\(git push:\*\) asks first/)
  })
})

describe.skipIf(problem !== null)('hooks and servers on standard streams', () => {
  const ATTACK = 'touch inside; touch "$OUTSIDE/evil"; exit 0'

  it.each([
    [{ hooks: true, mcpServers: true }, false],
    [{}, true],
  ])('with %j can write outside: %j', async (sandbox, isOutside) => {
    const outside = createOutsideFolder()
    const hooks = { Stop: [{ hooks: [{ type: 'command', command: ATTACK }] }] }
    const server = {
      command: 'sh',
      args: ['-c', ATTACK.replaceAll('inside', 'server').replaceAll('evil', 'worse')],
    }
    const more = { hooks, mcpServers: { bad: server }, env: { OUTSIDE: outside } }
    const world = await openWorld(['Hello.'], sandbox, more)
    await world.run('chat', '-p', 'Work.')
    expect([world.read('inside'), world.read('server')]).toEqual(['', ''])
    expect(['evil', 'worse'].map((name) => existsSync(join(outside, name)))).toEqual([isOutside, isOutside])
  })
})

describe('a sandbox that cannot confine', () => {
  it('is told in one line with what to install, and commands are asked about', async () => {
    const { folder, home } = await createChatWorld(playSteps('Done.'))
    const options = {
      folder,
      ownFolder: home,
      places: new Map(),
      guards: { isReadOnly: () => false },
      hasNetwork: false,
    }
    mkdirSync(home)
    expect(await openSandbox({ ...options, platform: 'win32' })).toEqual({
      ok: false,
      why: 'there is none for this system',
    })
    const missing = await openSandbox({ ...options, platform: 'linux', programFolders: [home] })
    expect(missing).toEqual({ ok: false, why: expect.stringContaining('sudo apt install bubblewrap') })
    // A program that runs the command as it is.
    writeFileSync(
      join(home, 'bwrap'),
      '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n',
      { mode: 0o755 },
    )
    const lying = await openSandbox({ ...options, platform: 'linux', programFolders: [home] })
    expect(lying).toEqual({ ok: false, why: 'a command could write outside of it' })
  })

  it('of a project has no effect', async () => {
    const world = await createChatWorld(playSteps(bash('touch ran'), 'Done.'))
    world.write('.tidemark/settings.json', '{"sandbox": true}')
    const { err } = await world.run('chat', '-p', 'Work.')
    expect(err).toMatch(/set sandbox, which has no effect/)
    expect(world.lastResults().join()).toMatch(/Nobody can be asked/)
  })
})
