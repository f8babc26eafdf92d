import { OnnxGraph } from './onnx-graph.ts'
import type { Tensor } from './safetensors.ts'

/** As `config.json` has it. */
export interface BertConfig {
  hidden_size: number
  num_attention_heads: number
  num_hidden_layers: number
  layer_norm_eps: number
}

/**
 * A BERT model as ONNX, of its weights: takes the numbers of a text's pieces as `pieces` and 0, 1, 2, … as `places`, and gives the mean of
 * what it makes of them. One text at a time, so that nothing is padded.
 */
export function bertAsOnnx(weights: ReadonlyMap<string, Tensor>, config: BertConfig): { model: Uint8Array; output: string } {
  const { hidden_size: size, num_attention_heads: heads, num_hidden_layers: layers, layer_norm_eps: epsilon } = config
  const graph = new OnnxGraph()
  const weight = (name: string) => {
    const tensor = weights.get(name)
    if (!tensor) throw new Error(`the weights have no ${name}`)
    return graph.tensor(tensor)
  }
  const add = (a: string, b: string) => graph.add('Add', [a, b])
  const normal = (x: string, name: string) => graph.add('LayerNormalization', [x, weight(`${name}.weight`), weight(`${name}.bias`)], { axis: -1, epsilon: { float: epsilon } })
  const dense = (x: string, name: string) => graph.add('Gemm', [x, weight(`${name}.weight`), weight(`${name}.bias`)], { transB: 1 })
  const byHead = graph.numbers([0, heads, size / heads])
  const together = graph.numbers([0, size])
  const scale = graph.scalar(1 / Math.sqrt(size / heads))

  const attention = (x: string, layer: string) => {
    const split = (name: string, perm: readonly number[]) => graph.add('Transpose', [graph.add('Reshape', [dense(x, `${layer}.attention.self.${name}`), byHead])], { perm })
    const likeness = graph.add('Mul', [graph.add('MatMul', [split('query', [1, 0, 2]), split('key', [1, 2, 0])]), scale])
    const seen = graph.add('MatMul', [graph.add('Softmax', [likeness], { axis: -1 }), split('value', [1, 0, 2])])
    return dense(graph.add('Reshape', [graph.add('Transpose', [seen], { perm: [1, 0, 2] }), together]), `${layer}.attention.output.dense`)
  }

  const pieces = graph.add('Gather', [weight('embeddings.word_embeddings.weight'), graph.input('pieces')])
  const places = graph.add('Gather', [weight('embeddings.position_embeddings.weight'), graph.input('places')])
  const kind = graph.add('Gather', [weight('embeddings.token_type_embeddings.weight'), graph.numbers([0])])
  let x = normal(add(add(pieces, kind), places), 'embeddings.LayerNorm')
  for (let number = 0; number < layers; number += 1) {
    const layer = `encoder.layer.${number}`
    x = normal(add(attention(x, layer), x), `${layer}.attention.output.LayerNorm`)
    const widened = graph.add('Gelu', [dense(x, `${layer}.intermediate.dense`)])
    x = normal(add(dense(widened, `${layer}.output.dense`), x), `${layer}.output.LayerNorm`)
  }
  const output = graph.add('ReduceMean', [x, graph.numbers([0])], { keepdims: 0 })
  return { model: graph.model(output, size), output }
}
