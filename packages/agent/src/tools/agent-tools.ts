/**
 * The tools of the agent `tidemark chat`. Their names and input fields are those that models know from other coding
 * agents. Permissions are not checked here: see `describeToolAccess` for what a call would access.
 */
import { type ContextSource, hostSource, type TidemarkOptions } from 'tidemark'
import { createBashTools } from './bash-tools.ts'
import { createConversationTools } from './conversation-tools.ts'
import { createReadTool } from './read-tool.ts'
import { createSearchTools } from './search-tools.ts'
import type { AgentTool } from './tool-definition.ts'
import type { ToolEnvironment } from './tool-environment.ts'
import { createWebFetchTool } from './web-fetch-tool.ts'
import { createWriteTools } from './write-tools.ts'

/**
 * Creates the tools, keyed by name. The session needs the options of `createToolSessionOptions` as well, and
 * `environment.shells.close()` must be called at its end.
 */
export function createAgentTools(environment: ToolEnvironment): Readonly<Record<string, AgentTool>> {
  return {
    Read: createReadTool(environment),
    ...createWriteTools(environment),
    ...createBashTools(environment),
    ...createSearchTools(environment),
    WebFetch: createWebFetchTool(environment),
    ...createConversationTools(environment),
  }
}

interface ToolOptions extends Required<Pick<TidemarkOptions, 'policy' | 'cleanups'>> {
  /** Context sources to add. */
  readonly carriers: readonly ContextSource[]
}

/**
 * Returns the options that a session with these tools needs. Read answers "unchanged" only while the earlier text is in the context, so it
 * must be told of every rewrite. It limits its results itself, so they must not be spilled. The state of the shell is attached again after
 * a compaction.
 */
export function createToolSessionOptions({
  seenFiles,
  shells,
  scope = 'main',
}: Pick<ToolEnvironment, 'seenFiles' | 'shells'> & {
  /** Whose context it is: `main`, or the source label of a subagent. */
  readonly scope?: string
}): ToolOptions {
  const leaveFolder = ({ kind }: { readonly kind: string }): void => {
    // The command that changed the directory may no longer be in the conversation.
    if (kind === 'undo' || kind === 'rewind') shells.folder = null
  }
  return {
    policy: { spill: { exceptTools: ['Read'] } },
    cleanups: [
      { name: 'files read', scope, forget: (rewritten) => seenFiles.forget(rewritten) },
      { name: 'directory of the shell', scope, forget: leaveFolder },
    ],
    carriers: [
      hostSource({
        name: 'shell',
        tellsChanges: false,
        read() {
          const text = shells.describe()
          return text === null ? [] : [{ text }]
        },
      }),
    ],
  }
}
