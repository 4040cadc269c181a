/**
 * /permissions lists the rules that decide about tool calls and withdraws those of the session; Shift-Tab switches the
 * mode. /sandbox shows what commands can reach.
 */
import { existsSync } from 'node:fs'
import { escapeForApproval, formatPath, toSafeLine } from '@tidemark/terminal/render/text'
import { MODE_LABELS, type PermissionMode, PLAN_TOOL } from '../agent/permissions.ts'
import type { PlaceAccess } from '../sandbox/mount-plan.ts'
import type { PanelRow } from '../screen/panel.ts'
import { type ChatContext, type SlashCommand, showPage } from './chat-context.ts'

export const permissionsCommand: SlashCommand = {
  name: 'permissions',
  args: '',
  description: 'the permission mode and rules; withdraws rules of this session',
  async run(chat) {
    let firstChoice = 0
    for (;;) {
      const rules = chat.sessionRules
      const result = await chat.screen.openPanel({
        title: 'Permissions',
        rows: () => listRows(chat),
        actions: rules.length === 0 ? [] : [{ key: 'd', label: 'withdraw the rule' }],
        ...(rules.length === 0 ? {} : { firstChoice: Math.min(firstChoice, rules.length - 1) }),
      })
      if (result === null || result.choice < 0) return
      const [withdrawn] = rules.splice(result.choice, 1)
      firstChoice = result.choice
      if (withdrawn !== undefined)
        chat.show(`No longer allowed in this session: ${escapeForApproval(withdrawn)}`)
    }
  },
}

const MODE_TEXTS: Readonly<Record<PermissionMode, string>> = {
  default: 'Reading in the folder is allowed; changes, commands and the network are asked about.',
  'accept-edits': 'Reading and editing in the folder are allowed; commands and the network are asked about.',
  'allow-all': 'Everything is allowed that no rule denies or asks about; protected paths are asked about.',
  plan: 'Only reading is allowed, until you have approved a plan.',
}

function listRows({ agent, sessionRules, start, theme: { colors } }: ChatContext): readonly PanelRow[] {
  const mode = agent.readMode()
  const { deny, ask, allow } = start.settings.permissions
  const settings = [
    ...deny.map((rule) => `${colors.red('deny')}   ${escapeForApproval(rule)}`),
    ...ask.map((rule) => `${colors.yellow('ask')}    ${escapeForApproval(rule)}`),
    ...allow.map((rule) => `${colors.green('allow')}  ${escapeForApproval(rule)}`),
  ]
  const none = { text: colors.dim('  none') }
  return [
    { text: `${colors.bold('Mode')}  ${MODE_LABELS[mode] ?? mode}  ${colors.dim('shift+tab switches it')}` },
    { text: `  ${MODE_TEXTS[mode]}` },
    { text: '' },
    { text: colors.bold('Allowed in this session') },
    ...(sessionRules.length === 0 ? [none] : []),
    ...sessionRules.map((rule) => ({ text: escapeForApproval(rule), isChoice: true })),
    { text: '' },
    { text: `${colors.bold('Rules of the settings')}  ${colors.dim('as they were at the start')}` },
    ...(settings.length === 0 ? [none] : settings.map((text) => ({ text: `  ${text}` }))),
  ]
}

/** Switches to the next permission mode. `allow-all` is among the modes only if the chat was started in it. */
export async function switchToNextPermissionMode({ agent, start }: ChatContext): Promise<void> {
  const isStartMode = (mode: PermissionMode): boolean =>
    (start.permissionMode ?? start.settings.permissionMode) === mode
  const modes: readonly PermissionMode[] = [
    'default',
    'accept-edits',
    // Plan mode needs the tool with which the model submits its plan.
    ...(agent.toolNames.includes(PLAN_TOOL) ? (['plan'] as const) : []),
    ...(isStartMode('allow-all') ? (['allow-all'] as const) : []),
  ]
  const next = modes[(modes.indexOf(agent.readMode()) + 1) % modes.length] ?? 'default'
  await agent.switchMode(next)
}

export const sandboxCommand: SlashCommand = {
  name: 'sandbox',
  args: '',
  description: 'what commands can write, read and reach in the sandbox',
  run: (chat) => showPage(chat, 'Sandbox', formatSandbox(chat)),
}

const NOT_REACHED = 'no sockets of services, no other processes'

function formatSandbox({ agent: { sandbox }, start, theme: { colors } }: ChatContext): string {
  if (sandbox === null)
    return 'Off: commands are not confined, and asked about.\nTo turn it on: "sandbox": true in your settings.'
  if (!sandbox.ok) return `It cannot be used, so that commands are asked about: ${toSafeLine(sandbox.why)}`
  const { places, hasNetwork, listedHosts } = sandbox.sandbox
  const list = (access: PlaceAccess): readonly string[] => {
    const paths = [...places].filter(([path, each]) => each === access && existsSync(path))
    return paths.map(([path]) => `  ${formatPath(path)}`)
  }
  const { hooks, mcpServers } = start.settings.sandbox ?? {}
  const others = [hooks === true ? null : 'hooks', mcpServers === true ? null : 'MCP servers'].flatMap(
    (name) => name ?? [],
  )
  return [
    'On: commands run without questions, and can',
    `${colors.bold('write')}`,
    ...list('write'),
    `  not in them: settings of Git, shells, editors and agents, ${colors.dim('at any depth, and what rules deny to edit')}`,
    `${colors.bold('read')} everything that you can, except`,
    ...list('none'),
    `  what rules deny to read`,
    ...(hasNetwork || listedHosts.length === 0
      ? [`${colors.bold('reach')} ${hasNetwork ? 'the network' : 'no network'}, ${NOT_REACHED}`]
      : [
          `${colors.bold('reach')} these hosts, through a proxy; ${NOT_REACHED}`,
          ...listedHosts.map((host) => `  ${toSafeLine(host)}`),
        ]),
    '',
    'A call with outside: true is asked about in every mode.',
    `Outside are also: what you type after !, slash commands${others.map((name) => `, ${name}`).join('')}.`,
  ].join('\n')
}
