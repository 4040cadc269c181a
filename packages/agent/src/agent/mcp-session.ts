/** MCP servers as a part of the agent's session: where they keep their files, their tools, and what the engine must know. */
import { join } from 'node:path'
import type { ModelChoice, TidemarkOptions, Tools } from 'tidemark'
import { type McpServers, openMcpServers } from '../mcp/mcp-servers.ts'
import type { Sandbox } from '../sandbox/sandbox.ts'
import type { InheritedServers } from './agent-options.ts'
import type { AgentSettings } from './settings.ts'

/** Starts the MCP servers of the settings, and returns before they run; null if there are none. */
export async function openServers(options: {
  readonly settings: AgentSettings
  readonly model: ModelChoice
  readonly folder: string
  /** The folder with the files of the session. */
  readonly ownFolder: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly onNotice?: (message: string) => void
  readonly firstServerWait?: number
  readonly inherited?: object
  readonly sandbox: Sandbox | undefined
}): Promise<McpServers | null> {
  const { settings, model, folder, ownFolder, env, onNotice, sandbox } = options
  const { mcpServers, findServerObjection } = settings
  // A subagent uses the servers of the main conversation.
  if (mcpServers === undefined || options.inherited !== undefined) return null
  return await openMcpServers({
    servers: mcpServers,
    folder,
    env,
    stateFile: join(ownFolder, 'mcp-tools.json'),
    outputFolder: join(ownFolder, 'outputs'),
    addsForFree: model.profile.capabilities.toolChanges,
    ...(findServerObjection === undefined ? {} : { findObjection: findServerObjection }),
    ...(sandbox !== undefined && settings.sandbox?.mcpServers === true ? { confine: sandbox.enter } : {}),
    ...(onNotice === undefined ? {} : { onNotice }),
    ...(options.firstServerWait === undefined ? {} : { firstWait: options.firstServerWait }),
  })
}

/**
 * Returns a function that reads the tools of the agent with those of the servers. It returns another object only if they
 * have changed.
 */
export function joinTools(own: Tools, mcp: McpServers, isOffered: (name: string) => boolean): () => Tools {
  let last: { readonly given: Tools; readonly joined: Tools } | null = null
  return () => {
    const given = mcp.tools()
    if (last?.given !== given) {
      const offered = Object.entries(given).filter(([name]) => isOffered(name))
      last = { given, joined: { ...own, ...Object.fromEntries(offered) } }
    }
    return last.joined
  }
}

/** Returns what a subagent has of the servers: their tools as they are now, because a change would break its cache. */
export function shareServers(mcp: McpServers | null): InheritedServers {
  if (mcp === null) return NO_SERVERS
  const { isReadOnly, findTool } = mcp
  return { tools: mcp.tools(), instructions: mcp.readInstructions(), isReadOnly, findTool }
}

const NO_SERVERS: InheritedServers = {
  tools: {},
  instructions: null,
  isReadOnly: () => false,
  findTool: async () => null,
}

/** Returns the cleanup that lets the tools of servers change with a compaction; none without servers. */
export function listServerCleanups(mcp: McpServers | null): NonNullable<TidemarkOptions['cleanups']> {
  if (mcp === null) return []
  return [
    {
      name: 'tools of MCP servers',
      scope: 'main',
      forget({ kind }) {
        // The prefix is new, so that the tools can change without a further cache break.
        if (kind === 'compact') mcp.noteCompaction()
      },
    },
  ]
}
