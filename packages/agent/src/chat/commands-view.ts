/** Slash commands that only show something: costs, the log, notes, memory files, hooks, MCP servers, skills, subagents. */

import { existsSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { renderSessionPage } from '@tidemark/terminal/pages/session-page'
import {
  formatCost,
  formatCount,
  formatDollars,
  formatTokens,
} from '@tidemark/terminal/render/format-numbers'
import { createScreen } from '@tidemark/terminal/render/screen'
import { formatPath, formatProjectPath, toSafeLine } from '@tidemark/terminal/render/text'
import type { Session } from 'tidemark'
import { exportLogToFile, sessionPaths } from 'tidemark/logs'
import { formatSubagentFigures } from '../screen/event-lines.ts'
import { toPageRows } from '../screen/panel.ts'
import { type ChatContext, type SlashCommand, showPage } from './chat-context.ts'
import { inspectSession, readSessionNotes } from './session-files.ts'

export const costCommand: SlashCommand = {
  name: 'cost',
  args: '',
  description: 'what the session has cost, what the cache saved, and where it broke',
  async run(chat) {
    const { start, agent, theme } = chat
    const report = await inspectSession(start.home, agent.session.id)
    const inherited = agent.session.copiedCost()
    const screen = { ...createScreen(start.terminal), colors: theme.colors }
    await chat.screen.openPanel({
      title: 'Cost of this session',
      rows(width) {
        const page =
          report === null ? '' : renderSessionPage(report, { ...screen, columns: Math.max(60, width) })
        return toPageRows(`${formatMoney(chat, inherited)}\n\n${page}`)
      },
      actions: [],
    })
  },
}

type InheritedCost = NonNullable<ReturnType<Session['copiedCost']>>

function formatMoney({ agent, theme: { colors } }: ChatContext, inherited: InheritedCost | null): string {
  const money = agent.session.money()
  const { spent, savedByCache, lostToBreaks, spentOnCompaction, spentOnClearing, calls, breaks } = money
  const since = inherited === null ? '' : ' since the fork'
  return [
    `${colors.bold(formatCost(spent.total, spent.priced))} spent in ${formatCount(calls, 'call')}${since}`,
    ...(inherited === null ? [] : [formatInherited(inherited)]),
    `${formatDollars(savedByCache.known)} saved by the prompt cache`,
    `${formatDollars(lostToBreaks.known)} lost to ${formatCount(breaks, 'cache break')} (${formatTokens(money.tokensLostToBreaks)} tokens)`,
    `${formatDollars(spentOnCompaction.known)} for summaries, ${formatDollars(spentOnClearing.known)} for caching again after clearings`,
  ].join('\n')
}

/** Describes the cost of a fork's copied part. It was paid in the other session, so it is not part of this session's total. */
function formatInherited({ from, totals: { spent, calls } }: InheritedCost): string {
  const cost = formatCost(spent.total, spent.priced)
  return `${cost} in ${formatCount(calls, 'call')} inherited from ${toSafeLine(from)}, counted there`
}

export const exportCommand: SlashCommand = {
  name: 'export',
  args: '[file]',
  description: 'write the whole conversation as Markdown, without secrets',
  async run(chat, given) {
    const { home, folder } = chat.start
    const { id } = chat.agent.session
    const file = resolve(folder, given === '' ? `${id}.md` : given)
    if (!existsSync(dirname(file)))
      return chat.show(`There is no folder ${formatPath(dirname(file))}.`, 'warning')
    const outcome = await exportLogToFile(sessionPaths(home, id).log, file, { home })
    if (!outcome.ok) return chat.show(outcome.message, 'warning')
    chat.show(`Written: ${formatPath(file)}`, 'good')
    if (outcome.missingBlobs.length > 0)
      chat.show(
        `${formatCount(outcome.missingBlobs.length, 'large result')} could not be read: the file has the beginning and end of each.`,
        'warning',
      )
  },
}

export const notesCommand: SlashCommand = {
  name: 'notes',
  args: '',
  description: 'the notes that are kept of this session, for the next compaction',
  async run(chat) {
    const notes = await readSessionNotes(chat.start.home, chat.agent.session.id)
    if (notes === null) return chat.show('There are no notes yet: they are made as the conversation grows.')
    await showPage(chat, 'Notes of this session', notes)
  },
}

export const memoryCommand: SlashCommand = {
  name: 'memory',
  args: '',
  description: 'the memory files that the model was given',
  async run(chat) {
    const { memoryFiles: memory, start, theme } = chat
    if (memory.length === 0)
      return chat.show('No memory file was read so far: CLAUDE.md and others are read with a request.')
    // A file that was read again after a compaction or change is listed once, with the newest reason.
    const files = new Map(memory.map((file) => [file.filePath, file]))
    const rows = [...files.values()].map(({ filePath, memoryType, loadReason, parentFilePath }) => {
      const from = parentFilePath === undefined ? '' : `, imported by ${formatPath(parentFilePath)}`
      const how = theme.colors.dim(`${memoryType.toLowerCase()}, ${loadReason}${from}`)
      return `${formatProjectPath(filePath, start.folder)}  ${how}`
    })
    await showPage(chat, 'Memory files', rows.join('\n'))
  },
}

export const hooksCommand: SlashCommand = {
  name: 'hooks',
  args: '',
  description: 'the hooks of the settings',
  async run(chat) {
    const hooks = Object.entries(chat.start.settings.hooks ?? {})
    const { colors } = chat.theme
    const rows = hooks.flatMap(([event, groups]) => [
      colors.bold(event),
      ...(groups ?? []).map((group) => `  ${toSafeLine(JSON.stringify(group))}`),
    ])
    const { offered = [] } = chat.start.settings.trust ?? {}
    const note =
      offered.length === 0
        ? []
        : ['', `${formatCount(offered.length, 'part')} of the project's settings not trusted: tidemark trust`]
    await showPage(chat, 'Hooks', [...(rows.length === 0 ? ['No hooks are set.'] : rows), ...note].join('\n'))
  },
}

export const mcpCommand: SlashCommand = {
  name: 'mcp',
  args: '',
  description: 'MCP servers and their tools',
  async run(chat) {
    const servers = Object.keys(chat.start.settings.mcpServers ?? {})
    const tools = chat.agent.listServerTools()
    const { colors } = chat.theme
    const isNew = chat.agent.session.messages().length === 0
    const none = isNew ? 'tools come with the first request' : 'no tools: starting, failed or stopped'
    const rows = servers.flatMap((server) => {
      const own = tools.filter((tool) => tool.startsWith(`mcp__${server.replaceAll(/[^\w-]/g, '_')}__`))
      const count = own.length === 0 ? none : formatCount(own.length, 'tool')
      return [
        `${colors.bold(toSafeLine(server))}  ${colors.dim(count)}`,
        ...own.map((tool) => `  ${toSafeLine(tool)}`),
      ]
    })
    await showPage(chat, 'MCP servers', rows.length === 0 ? 'No MCP servers are set.' : rows.join('\n'))
  },
}

export const skillsCommand: SlashCommand = {
  name: 'skills',
  args: '',
  description: 'skills and slash commands that are files',
  async run(chat) {
    const { colors } = chat.theme
    const files = await chat.agent.listPromptFiles()
    const rows = files.map(({ name, kind, origin, description }) => {
      const title = `${kind === 'skill' ? '' : '/'}${toSafeLine(name)}`
      return `${colors.bold(title)}  ${colors.dim(`${kind}, ${origin}`)}\n  ${toSafeLine(description)}`
    })
    const none = 'There are none. Skills are .claude/skills/NAME/SKILL.md, commands .claude/commands/NAME.md.'
    await showPage(chat, 'Skills and commands', rows.length === 0 ? none : rows.join('\n'))
  },
}

export const agentsCommand: SlashCommand = {
  name: 'agents',
  args: '',
  description: 'subagents: definitions, and those that were started',
  async run(chat) {
    const { agent, theme } = chat
    const { colors } = theme
    const started = agent.subagents().map((record) => {
      const { id, type, status, description } = record
      const state = status === 'running' ? colors.yellow(status) : colors.dim(status)
      return `${colors.bold(toSafeLine(type))} ${id}  ${state}\n  ${toSafeLine(description)}, ${formatSubagentFigures(record)}`
    })
    const definitions = (await agent.listDefinitions()).map(
      ({ name, description }) =>
        `${colors.bold(toSafeLine(name))}  ${colors.dim('definition')}\n  ${toSafeLine(description)}`,
    )
    const rows = [...started, ...definitions]
    await showPage(chat, 'Subagents', rows.length === 0 ? 'There are no subagents.' : rows.join('\n'))
  },
}
