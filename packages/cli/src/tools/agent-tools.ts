/**
 * The tools of the agent `tidemark chat`. Their names and input fields are those that models know from other coding
 * agents. Permissions are not checked here: see `describeToolAccess` for what a call would access.
 */
import type { TidemarkOptions } from 'tidemark'
import type { AgentEnvironment } from './agent-environment.ts'
import { createBashTools } from './bash-tools.ts'
import { createConversationTools } from './conversation-tools.ts'
import { createReadTool } from './read-tool.ts'
import { createSearchTools } from './search-tools.ts'
import type { AgentTool } from './tool-definition.ts'
import { createWebFetchTool } from './web-fetch-tool.ts'
import { createWriteTools } from './write-tools.ts'

/**
 * Creates the tools, keyed by name. The session needs the options of `createToolOptions` as well, and
 * `environment.shells.close()` must be called at its end.
 */
export function createAgentTools(environment: AgentEnvironment): Readonly<Record<string, AgentTool>> {
  return {
    Read: createReadTool(environment),
    ...createWriteTools(environment),
    ...createBashTools(environment),
    ...createSearchTools(environment),
    WebFetch: createWebFetchTool(environment),
    ...createConversationTools(environment),
  }
}

/**
 * Returns the options that a session with these tools needs. Read answers "unchanged" only while the earlier text is in
 * the context, so it must hear of every rewrite, and its results, which it limits itself, must not be spilled.
 */
export function createToolOptions({
  readState,
}: Pick<AgentEnvironment, 'readState'>): Required<Pick<TidemarkOptions, 'policy' | 'cleanups'>> {
  return {
    policy: { spill: { exceptTools: ['Read'] } },
    cleanups: [{ name: 'files read', scope: 'main', forget: (rewritten) => readState.forget(rewritten) }],
  }
}
