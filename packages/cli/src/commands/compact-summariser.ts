/** The model that writes a summary, reached with the person's own key. */
import { anthropic, type ModelChoice } from 'tidemark'
import type { Terminal } from '../terminal.ts'
import type { CompactChoices } from './compact-choices.ts'

export function summariserFor(
  { model, window, baseUrl }: CompactChoices,
  env: Terminal['env'],
): (sessionModel: string) => ModelChoice {
  const url = baseUrl ?? env.ANTHROPIC_BASE_URL
  const { ANTHROPIC_API_KEY: apiKey, ANTHROPIC_AUTH_TOKEN: authToken } = env
  const credentials = isSet(apiKey) ? { apiKey } : isSet(authToken) ? { authToken } : {}
  return (sessionModel) =>
    anthropic(model ?? sessionModel, {
      ...credentials,
      ...(isSet(url) ? { baseUrl: url } : {}),
      ...(window === undefined ? {} : { window }),
    })
}

function isSet(value: string | undefined): value is string {
  return value !== undefined && value !== ''
}
