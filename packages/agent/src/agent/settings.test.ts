import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { presets } from 'tidemark'
import { tidemarkHome } from 'tidemark/logs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { replaceTrust } from './folder-trust.ts'
import { findUserSettingsPath, readSettings } from './settings.ts'

let root: string
let project: string
let env: Record<string, string>

beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'tidemark-settings-'))
  project = join(root, 'project')
  env = { HOME: join(root, 'home') }
  await mkdir(project)
})
afterEach(() => rm(root, { recursive: true, force: true }))

async function write(path: string, value: unknown): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, typeof value === 'string' ? value : JSON.stringify(value))
}
const writeUser = (value: unknown) => write(findUserSettingsPath(env), value)
const writeProject = (value: unknown, name = 'settings.json') =>
  write(join(project, '.tidemark', name), value)

describe('settings', () => {
  it('are empty without any file', async () => {
    expect(await readSettings(project, env)).toEqual({
      permissions: { allow: [], ask: [], deny: [] },
      env: {},
      isItemTrusted: expect.any(Function),
      wasItemTrusted: expect.any(Function),
      isTrusted: false,
      memoryExcludes: [],
      notices: [],
    })
  })

  it('a project that is not trusted can forbid and ask, and allows nothing', async () => {
    await writeUser({ model: 'mine', permissions: { allow: ['Edit'] } })
    await writeProject({
      model: 'theirs',
      permissionMode: 'allow-all',
      permissions: { allow: ['Bash'], ask: ['Edit'], deny: ['Read(.env)'] },
    })
    const settings = await readSettings(project, env)
    expect(settings).toMatchObject({
      model: 'mine',
      permissions: { allow: ['Edit'], ask: ['Edit'], deny: ['Read(.env)'] },
    })
    expect(settings.permissionMode).toBeUndefined()
    expect(settings.notices).toEqual([
      expect.stringMatching(/model and permissionMode and permissions\.allow.*not trusted.*tidemark trust '/),
    ])
  })

  it('the user may name a policy instead of writing it, but only one that there is', async () => {
    await writeUser({ policy: 'economy' })
    expect((await readSettings(project, env)).policy).toEqual(presets.economy)
    await writeUser({ policy: 'cheap' })
    await expect(readSettings(project, env)).rejects.toThrow(
      /policy.*an object, or one of default, economy, claude-code-like, nothing/,
    )
  })

  it('a project is told that policy and env are read from the file of the user only', async () => {
    await writeUser({ trustedFolders: [root] })
    await writeProject({ policy: { compact: {} }, env: { A: 'b' } })
    const { env: variables, notices, policy } = await readSettings(project, env)
    expect([variables, policy]).toEqual([{}, undefined])
    expect(notices).toEqual([
      `The settings of this project set policy and env, which has no effect: it is read from ${findUserSettingsPath(env)} only.`,
    ])
  })

  it('a trusted project adds its rules, and its local file the last word', async () => {
    await writeUser({ trustedFolders: [root], permissions: { deny: ['Bash(rm:*)'] } })
    await writeProject({ model: 'shared', permissions: { allow: ['Bash(npm test:*)'] } })
    await writeProject({ model: 'local' }, 'settings.local.json')
    expect(await readSettings(project, env)).toMatchObject({
      model: 'local',
      permissions: { allow: ['Bash(npm test:*)'], deny: ['Bash(rm:*)'] },
      notices: [],
    })
  })

  it('hooks of the user, the project and its local file all apply, in this order', async () => {
    const hooks = (command: string) => ({ hooks: { Stop: [{ hooks: [{ command }] }] } })
    await writeUser({ ...hooks('user'), trustedFolders: [root] })
    await writeProject(hooks('shared'))
    await writeProject(hooks('local'), 'settings.local.json')
    const { Stop = [] } = (await readSettings(project, env)).hooks ?? {}
    expect(Stop.flatMap((group) => group.hooks.map(({ command }) => command))).toEqual([
      'user',
      'shared',
      'local',
    ])
  })

  it('trust follows symbolic links, not names', async () => {
    await writeUser({ trustedFolders: [join(root, 'trusted')] })
    await mkdir(join(root, 'trusted-not'))
    await symlink(project, join(root, 'trusted-not', 'x'))
    await writeProject({ permissions: { allow: ['Bash'] } })
    expect((await readSettings(join(root, 'trusted-not', 'x'), env)).permissions.allow).toEqual([])
  })

  it('a project cannot set variables, policy or trust', async () => {
    await writeUser({ trustedFolders: [root] })
    await writeProject({ env: { PATH: '/evil' }, policy: { compact: {} }, trustedFolders: ['/'] })
    const settings = await readSettings(project, env)
    expect(settings.env).toEqual({})
    expect(settings.policy).toBeUndefined()
  })

  it.each([
    ['{', /settings\.json is not JSON/],
    [[], /must contain one JSON object/],
    [{ modle: 'x' }, /unknown field modle; known: .*model.*hooks/],
    [{ permissions: { allow: ['Bash('] } }, /permissions: expected rules in allow; cannot read the rule/],
    [{ permissions: { alow: [] } }, /expected allow, ask and deny, not alow/],
    [{ permissionMode: 'yolo' }, /permissionMode: expected one of default/],
    [{ env: { A: 1 } }, /env: expected an object of texts/],
    [{ trustedFolders: ['work'] }, /trustedFolders: expected a list of absolute folders/],
    [{ hooks: [] }, /hooks: expected commands by event; expected an object of events/],
    [
      { hooks: { PreToolUs: [] } },
      /there is no event PreToolUs; the events are UserPromptSubmit, PreToolUse/,
    ],
    [{ hooks: { Stop: [{ hooks: [{ command: '' }] }] } }, /Stop\[0\]: command: expected text/],
    [{ hooks: { Stop: [{ hooks: [{ type: 'http', url: 'x' }] }] } }, /type "http" is not supported/],
    [{ hooks: { Stop: [{ hooks: [{ command: 'x', timeout: 0 }] }] } }, /timeout: expected seconds above 0/],
    [{ hooks: { Stop: [{ matcher: '(', hooks: [] }] } }, /matcher: expected names such as Edit\|Write/],
  ])('a file that cannot be used is named with what is wrong: %j', async (value, message) => {
    await writeUser(value)
    await expect(readSettings(project, env)).rejects.toThrow(message)
  })
})

describe('MCP servers', () => {
  const files = { command: 'files-server' }

  it('come from the settings of the user, and from .mcp.json only after trust', async () => {
    await writeUser({ mcpServers: { files }, trustedFolders: [] })
    await write(join(project, '.mcp.json'), { mcpServers: { theirs: { command: 'node', args: ['a.js'] } } })
    await write(join(project, 'a.js'), 'one')
    const { mcpServers, trust } = await readSettings(project, env)
    expect(mcpServers).toEqual({ files })
    const [item] = trust?.untrusted ?? []
    expect(item).toEqual({
      setting: 'mcpServers',
      parts: ['theirs:', 'node', 'with ["a.js"]'],
      files: [{ path: 'a.js', hash: expect.any(String) }],
    })
    await writeUser({ mcpServers: { files }, trustedFolders: [root] })
    const trusted = await readSettings(project, env)
    expect(Object.keys(trusted.mcpServers ?? {})).toEqual(['files', 'theirs'])
    expect(trusted.hookFiles).toEqual([expect.stringMatching(/a\.js$/)])
  })

  it.each([
    ['{', /\.mcp\.json is not used: /],
    ['[]', /expected an object mcpServers/],
    [
      { mcpServers: { a: { type: 'sse', url: 'x' } } },
      /the server a: expected type stdio or http, not "sse"/,
    ],
    [{ mcpServers: { a: {} } }, /the server a: expected a command or a url/],
    [
      { mcpServers: { a: { command: 'x', env: { A: 1 } } } },
      /the server a: expected env as an object of texts/,
    ],
  ])('in a file that cannot be used are left out: %j', async (value, notice) => {
    await write(join(project, '.mcp.json'), value)
    const { mcpServers, notices } = await readSettings(project, env)
    expect([mcpServers, notices]).toEqual([undefined, [expect.stringMatching(notice)]])
  })

  it.each([
    [{ command: './a.sh' }],
    [{ command: 'bash', args: ['--norc', 'a.sh'] }],
    [{ command: 'npx', args: ['-y', 'tsx', './a.sh', '--port', '1'] }],
    [{ command: 'uv', args: ['run', '--with', 'mcp', 'a.sh'] }],
    [{ command: 'node', args: ['--import=./a.sh', 'b.mjs'] }],
  ])(
    'of a project are not started with a script that has changed since it was trusted: %j',
    async (theirs) => {
      await write(join(project, '.mcp.json'), { mcpServers: { theirs } })
      await write(join(project, 'a.sh'), 'one')
      const { trust } = await readSettings(project, env)
      await replaceTrust(tidemarkHome(env), project, trust?.items ?? [])
      const { mcpServers, findServerObjection } = await readSettings(project, env)
      expect(mcpServers).toEqual({ theirs })
      expect(await findServerObjection?.('theirs')).toBeNull()
      await write(join(project, 'a.sh'), 'two')
      expect(await findServerObjection?.('theirs')).toContain('has changed since you trusted it')
    },
  )

  it('in settings that cannot be used are an error', async () => {
    await writeUser({ mcpServers: { a: { command: '' } } })
    await expect(readSettings(project, env)).rejects.toThrow(
      'mcpServers: expected MCP servers by name; the server a',
    )
  })
})
