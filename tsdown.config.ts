import { defineConfig } from 'tsdown'

const packages = {
  core: ['src/index.ts'],
  wire: ['src/index.ts'],
  simulator: ['src/index.ts'],
  tidemark: ['src/index.ts', 'src/testing/index.ts'],
  cli: ['src/index.ts'],
}

export default defineConfig(
  Object.entries(packages).map(([name, entry]) => ({
    name,
    cwd: `packages/${name}`,
    entry,
    format: 'esm' as const,
    platform: name === 'core' || name === 'wire' ? ('neutral' as const) : ('node' as const),
    dts: true,
    fixedExtension: true,
    clean: true,
    logLevel: 'warn' as const,
    checks: { bundlerTimings: false },
  })),
)
