/** MCP servers: each rule that keeps the cache, the names and the trust, broken on purpose. */
import type { Mutant } from '../scripts/mutants/mutant.ts'

const CATALOGUE = 'packages/agent/src/mcp/tool-catalogue.ts'
const CATALOGUE_TEST = ['packages/agent/src/mcp/tool-catalogue.test']
const AGENT_TEST = ['packages/agent/test/mcp.test']

export const mutants: readonly Mutant[] = [
  {
    name: 'mcp-older-list-of-tools-wins',
    law: 'one whose answers overtake each other offers the tools of the newest',
    file: 'packages/agent/src/mcp/server-connection.ts',
    find: 'if (order < newest) return',
    replace: '',
    tests: AGENT_TEST,
  },
  {
    name: 'mcp-misses-a-change-during-the-first-list',
    law: 'one that gets a new tool while it is first asked for its tools offers it',
    file: 'packages/agent/src/mcp/server-connection.ts',
    find: 'client.setNotificationHandler(ToolListChangedNotificationSchema, schedule)',
    replace:
      'setTimeout(() => client.setNotificationHandler(ToolListChangedNotificationSchema, schedule), 100)',
    tests: AGENT_TEST,
  },
  {
    name: 'mcp-call-does-not-wait-for-its-server',
    law: 'a call of a tool whose server is still starting waits for it',
    file: 'packages/tidemark/src/session/tools.ts',
    find: 'hasTool(name) || ((await findTool?.(name)) ?? null) !== null',
    replace: 'hasTool(name)',
    tests: [...AGENT_TEST, 'packages/tidemark/src/session/tools.test'],
  },
  {
    name: 'mcp-tools-in-the-order-of-the-listing',
    law: 'in whatever order tools are listed',
    file: CATALOGUE,
    find: '.sort((a, b) => compareText(toStableJson(a), toStableJson(b)))',
    replace: '',
    tests: CATALOGUE_TEST,
  },
  {
    name: 'mcp-fields-in-another-order-are-a-change',
    law: 'another order of tools or of fields is no change',
    file: CATALOGUE,
    find: 'Object.entries(part).sort(([a], [b]) => compareText(a, b))',
    replace: 'Object.entries(part)',
    tests: CATALOGUE_TEST,
  },
  {
    name: 'mcp-tools-break-the-cache-twice',
    law: 'later servers come together, once',
    file: CATALOGUE,
    find: 'if (!addsForFree && (hasGrown || !isSettled)) return catalogue',
    replace: 'if (!addsForFree && !isSettled) return catalogue',
    tests: CATALOGUE_TEST,
  },
  {
    name: 'mcp-late-servers-come-one-by-one',
    law: 'later servers come together, once',
    file: CATALOGUE,
    find: 'if (!addsForFree && (hasGrown || !isSettled)) return catalogue',
    replace: 'if (!addsForFree && hasGrown) return catalogue',
    tests: CATALOGUE_TEST,
  },
  {
    name: 'mcp-server-names-end-in-an-underscore',
    law: 'the server _a_ is called a',
    file: CATALOGUE,
    find: ".replaceAll(/^_|_$/g, '')",
    replace: '',
    tests: CATALOGUE_TEST,
  },
  {
    name: 'mcp-rule-covers-servers-with-a-longer-name',
    law: 'the rule mcp__files for the MCP tool mcp__files2__read',
    file: 'packages/agent/src/tools/tool-access.ts',
    find: '{given}__`)',
    replace: '{given}`)',
    tests: ['packages/agent/src/agent/permissions.test'],
  },
  {
    name: 'mcp-servers-of-a-project-need-no-trust',
    law: 'from .mcp.json only after trust',
    file: 'packages/agent/src/agent/settings.ts',
    find: '  return { permissions: { ask, deny } }',
    replace: '  return { permissions: { ask, deny }, ...arguments[0] }',
    tests: ['packages/agent/src/agent/settings.test'],
  },
  {
    name: 'mcp-call-in-progress-is-repeated',
    law: 'a server that is killed during a call ends the call',
    file: 'packages/agent/src/mcp/mcp-server.ts',
    find: 'if (!(error instanceof UndeliveredCallError)) throw error',
    replace: '',
    tests: AGENT_TEST,
  },
  {
    name: 'server-tool-in-plan-mode',
    law: 'a tool of an MCP server that may change something is not used',
    file: 'packages/agent/src/agent/permissions.ts',
    find: "access.kind === 'server' ? access.isReadOnly !== true :",
    replace: "access.kind === 'server' ? access.isReadOnly === null :",
    tests: ['packages/agent/test/plan-mode'],
  },
]
