import { OnnxGraph } from './onnx-graph.ts'
import type { Tensor } from './safetensors.ts'

/** The used fields of `config.json`. */
export interface BertConfig {
  hidden_size: number
  num_attention_heads: number
  num_hidden_layers: number
  layer_norm_eps: number
}

/**
 * Builds a BERT model as ONNX from its weights. Inputs: the ids of a text's word pieces as `pieces`, and 0, 1, 2, … as `positions`. Output:
 * the mean of the last hidden states. It takes one text at a time, so that nothing is padded.
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
  const normalise = (x: string, name: string) =>
    graph.add('LayerNormalization', [x, weight(`${name}.weight`), weight(`${name}.bias`)], { axis: -1, epsilon: { float: epsilon } })
  const dense = (x: string, name: string) => graph.add('Gemm', [x, weight(`${name}.weight`), weight(`${name}.bias`)], { transB: 1 })
  const byHead = graph.numbers([0, heads, size / heads])
  const together = graph.numbers([0, size])
  const scale = graph.scalar(1 / Math.sqrt(size / heads))

  const attention = (x: string, layer: string) => {
    const split = (name: string, perm: readonly number[]) =>
      graph.add('Transpose', [graph.add('Reshape', [dense(x, `${layer}.attention.self.${name}`), byHead])], { perm })
    const similarity = graph.add('Mul', [graph.add('MatMul', [split('query', [1, 0, 2]), split('key', [1, 2, 0])]), scale])
    const attended = graph.add('MatMul', [graph.add('Softmax', [similarity], { axis: -1 }), split('value', [1, 0, 2])])
    return dense(
      graph.add('Reshape', [graph.add('Transpose', [attended], { perm: [1, 0, 2] }), together]),
      `${layer}.attention.output.dense`,
    )
  }

  const pieces = graph.add('Gather', [weight('embeddings.word_embeddings.weight'), graph.input('pieces')])
  const positions = graph.add('Gather', [weight('embeddings.position_embeddings.weight'), graph.input('positions')])
  const kind = graph.add('Gather', [weight('embeddings.token_type_embeddings.weight'), graph.numbers([0])])
  let x = normalise(add(add(pieces, kind), positions), 'embeddings.LayerNorm')
  for (let number = 0; number < layers; number += 1) {
    const layer = `encoder.layer.${number}`
    x = normalise(add(attention(x, layer), x), `${layer}.attention.output.LayerNorm`)
    const widened = graph.add('Gelu', [dense(x, `${layer}.intermediate.dense`)])
    x = normalise(add(dense(widened, `${layer}.output.dense`), x), `${layer}.output.LayerNorm`)
  }
  const output = graph.add('ReduceMean', [x, graph.numbers([0])], { keepdims: 0 })
  return { model: graph.model(output, size), output }
}
