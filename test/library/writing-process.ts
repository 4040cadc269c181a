/** A process of its own: appends messages to a session that another process writes to as well, and compacts it. */
import { TidemarkError } from '@tidemark/core/errors'
import { user } from 'tidemark'
import { createTestTidemark } from '../support/test-tidemark.ts'

const { home, name, count } = JSON.parse(process.argv[2] ?? '{}')
const { tide, tools } = createTestTidemark({ home, turns: 1, resultTokens: 40 })

let refusals = 0
for (let index = 0; index < count; ) {
  const session = await tide.open('shared')
  try {
    await session.append(user(`${name} says ${index}.`))
    index += 1
    await session.run(null, tools).outcome
    if (index % 4 === 0) await session.compact()
  } catch (thrown) {
    if (!(thrown instanceof TidemarkError) || thrown.code !== 'locked') throw thrown
    refusals += 1
  } finally {
    await session.close()
  }
}
await tide.close()
process.stdout.write(JSON.stringify({ refusals }))
