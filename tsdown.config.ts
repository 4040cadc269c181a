import { defineConfig } from 'tsdown'

/**
 * The packages that are published. `core` and `wire` are private: they, and what the command uses of the other two,
 * are bundled from source into each package that needs them.
 */
const packages = {
  simulator: { index: 'src/index.ts' },
  tidemark: {
    index: 'src/index.ts',
    logs: 'src/logs.ts',
    catalogue: 'src/catalogue.ts',
    anthropic: 'src/anthropic.ts',
    records: 'src/records.ts',
    project: 'src/project.ts',
    tools: 'src/tools.ts',
    testing: 'src/testing/index.ts',
    telemetry: 'src/telemetry/index.ts',
  },
  agent: {
    chat: 'src/commands/chat.ts',
    tour: 'src/commands/tour.ts',
    trust: 'src/commands/trust.ts',
    sample: 'src/sample-project.ts',
    'search-worker': 'src/tools/search-worker.ts',
    'watchdog-worker': 'src/threads/watchdog-worker.ts',
    'network-bridge': 'src/sandbox/network-bridge.ts',
  },
  cli: { index: 'src/index.ts' },
}

export default defineConfig(
  Object.entries(packages).map(([name, entry]) => ({
    name,
    cwd: `packages/${name}`,
    entry,
    format: 'esm' as const,
    platform: 'node' as const,
    inputOptions: { resolve: { conditionNames: ['tidemark-source', 'node', 'import', 'default'] } },
    dts: { eager: true },
    fixedExtension: true,
    clean: true,
    logLevel: 'warn' as const,
    checks: { bundlerTimings: false },
  })),
)
