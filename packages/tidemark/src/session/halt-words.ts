/** Why an act stopped short, in a sentence that says what to do. */
import type { ApiMessage, Halt } from '@tidemark/core'

/** `messages`: the conversation as it stands. */
export function haltWords(halt: Halt, messages: readonly ApiMessage[]): string {
  switch (halt.reason) {
    case 'conflict':
      return 'Another process wrote to the session meanwhile. Nothing of it was lost; try again.'
    case 'locked':
      return 'message' in halt.refusal ? halt.refusal.message : 'Another process holds the session.'
    case 'invalid': {
      if (messages.length === 0) return 'Nothing was said yet: append a prompt first.'
      if (messages.at(-1)?.role === 'assistant')
        return 'The model has answered, and nothing was said since: append a prompt first.'
      const [first] = halt.findings
      return `The provider would refuse the request: ${first?.path ?? ''}: ${first?.message ?? 'invalid'}.`
    }
    case 'failed':
      return halt.failure.message
    case 'aborted':
      return 'It was called off.'
    case 'call-limit':
      return `The turn made ${halt.calls} calls to the model and was halted. Run with null to go on.`
    case 'prefix':
    case 'full':
      return halt.message
  }
}
