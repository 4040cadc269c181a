/**
 * `@tidemark/gateway`: a gateway for teams. Agents of many users go through sessions that any process can continue, with keys
 * and budgets, on one Postgres. The command is `tidemark gateway`.
 *
 * @module @tidemark/gateway
 */
export { listAudit } from './database/audit.ts'
export { describeDatabaseError, openDatabase } from './database/database.ts'
export { migrateDatabase } from './database/migrations.ts'
export { deleteSession } from './database/session-stores.ts'
export { addKey, type ListedKey, listKeys, PERIODS, type Period, revokeKey } from './keys/keys.ts'
export { type Gateway, type GatewayLogLine, type GatewayOptions, serveGateway } from './server/gateway.ts'
