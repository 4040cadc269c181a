/**
 * What `npm ci` runs last: builds every package. Where the bundler cannot run (no binary for this platform, Node too
 * old for it) it prints so and lets the install succeed: the command runs from source without a build.
 * JavaScript that Node 20 understands, because an install may begin with that.
 */
import { spawnSync } from 'node:child_process'

const obstacle = await findObstacle()
if (obstacle === null) {
  process.exitCode = spawnSync('npm run build', { stdio: 'inherit', shell: true }).status ?? 1
} else {
  console.warn(`Not built: ${obstacle}. The command runs from source on Node 22.19, 24.5 or newer.`)
}

async function findObstacle() {
  if (!process.features.typescript) return `the bundler needs Node 22.18 or newer, this is ${process.version}`
  try {
    await import('tsdown')
    return null
  } catch {
    return `the bundler does not load on ${process.platform}-${process.arch} (\`npm run build\` shows why)`
  }
}
