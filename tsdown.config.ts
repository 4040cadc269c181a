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
    sqlite: 'src/sqlite.ts',
    postgres: 'src/postgres.ts',
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
  gateway: { index: 'src/index.ts', 'log-reader-worker': 'src/page/log-reader-worker.ts' },
  cli: { index: 'src/index.ts' },
}

/** The page: one script for the browser and its style sheet, into the build of each package that serves it. */
const createPageConfig = (host: string) => ({
  name: `page of ${host}`,
  cwd: 'packages/page',
  entry: { page: 'src/main.tsx' },
  format: 'esm' as const,
  platform: 'browser' as const,
  target: 'es2022',
  inputOptions: { resolve: { conditionNames: ['tidemark-source', 'browser', 'import', 'default'] } },
  outDir: `../${host}/dist/page`,
  outputOptions: { entryFileNames: 'page.js' },
  deps: { alwaysBundle: /./ },
  copy: [{ from: 'src/page.css', to: `../${host}/dist/page` }],
  minify: true,
  dts: false,
  clean: false,
  logLevel: 'warn' as const,
  checks: { bundlerTimings: false },
})

export const pageConfig: ReturnType<typeof createPageConfig> = createPageConfig('cli')

export default defineConfig([
  pageConfig,
  createPageConfig('gateway'),
  ...Object.entries(packages).map(([name, entry]) => ({
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
])
