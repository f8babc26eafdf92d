// Tracing: the spans of a run, printed as each ends.
import { trace, type Span, type Tracer, type TracerProvider } from '@opentelemetry/api'
import { Agent, createTool, type ModelConfig } from 'heed'
import { scriptedModel } from 'heed/testing'

const script = () => scriptedModel([{ toolCalls: [{ toolName: 'timetable' }] }, 'At nine.'], { modelId: 'scripted' })

/** In place of an SDK, such as NodeSDK of @opentelemetry/sdk-node: Heed finds whichever provider is registered. */
function printingProvider(print: (text: string) => void): TracerProvider {
  let spans = 0
  const startSpan = (name: string) => {
    const context = { traceId: '1'.repeat(32), spanId: String(++spans).padStart(16, '0'), traceFlags: 1 }
    const span: Span = trace.wrapSpanContext(context)
    return Object.assign(span, { isRecording: () => true, end: () => print(name) })
  }
  return { getTracer: () => ({ startSpan }) as unknown as Tracer }
}

export async function main(model: ModelConfig = script(), print: (text: string) => void = console.log) {
  trace.setGlobalTracerProvider(printingProvider(print))
  try {
    const timetable = createTool({ id: 'timetable', description: 'When trains leave.', execute: () => ['9:00', '10:00'] })
    const guide = new Agent({ id: 'guide', name: 'Guide', instructions: 'You plan trips.', model, tools: { timetable } })
    return (await guide.generate('When does the next train leave?')).text
  } finally {
    trace.disable()
  }
}

if (import.meta.main) console.log(await main(process.env.OPENAI_API_KEY ? 'openai/gpt-5.5' : undefined))
