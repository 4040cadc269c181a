/** The real clients of this folder. They are loaded only once their packages are installed. */
import { installPackages } from '../harness/installed-packages.ts'
import type { Client } from './client.ts'

/** Installs the packages, and returns the clients; Codex CLI, which is large, only if it is asked for. */
export async function loadClients(
  withCodex: boolean,
  print: (line: string) => void,
): Promise<readonly Client[]> {
  installPackages('bench/clients', print)
  if (withCodex) installPackages('bench/clients/codex', print)
  const lists = await Promise.all([
    import('./agents/anthropic-sdk.ts').then((module) => module.anthropicClients),
    import('./agents/openai-sdk.ts').then((module) => module.openaiClients),
    import('./agents/ai-sdk.ts').then((module) => module.aiSdkClients),
    import('./agents/ai-sdk-openai.ts').then((module) => module.aiSdkOpenaiClients),
    import('./agents/openai-agents.ts').then((module) => module.openaiAgentsClients),
    import('./agents/langchain.ts').then((module) => [
      ...module.langchainClients,
      ...module.langchainOpenaiClients,
    ]),
    import('./agents/mastra.ts').then((module) => [...module.mastraClients, ...module.mastraOpenaiClients]),
    import('./agents/openrouter.ts').then((module) => module.openrouterClients),
    import('./agents/claude-code.ts').then((module) => module.claudeCodeClients),
    ...(withCodex ? [import('./agents/codex.ts').then((module) => module.codexClients)] : []),
  ])
  return lists.flat()
}
