/** Twenty sessions of real clients on two gateways, of which one is killed every five seconds for five minutes. */
import { describe, expect, it } from 'vitest'
import { explainMissingPostgres } from '../support/postgres-server.ts'
import { useGatewayWorlds } from './gateway-world.ts'
import { killGateways } from './killed-gateways.ts'

const missing = explainMissingPostgres()

describe.skipIf(missing !== null)('a gateway that is killed sixty times', () => {
  const createWorld = useGatewayWorlds()

  it('loses no record, doubles no result, and costs what was cut once more, and at most 1%', async () => {
    const figures = await killGateways(createWorld, {
      sessions: 20,
      kills: 60,
      everyMs: 5_000,
      window: 30_000,
      pieceMs: 40,
    })
    console.log(figures)
    expect(figures.lostRecords).toBe(0)
    expect(figures.compactions).toBeGreaterThan(0)
    expect(figures.repeatedCalls).toBeGreaterThan(0)
    expect(figures.repeatedCalls).toBeLessThanOrEqual(figures.cutAnswers)
    expect(figures.bill - figures.cutBill).toBeLessThanOrEqual(1.01 * figures.undisturbedBill)
  })
})
