"""Options of config.json that do not change what layers do to hidden states.

Every other option is read by an architecture or refused, as an unknown option may change the
mathematics.
"""

ORIGIN_OPTIONS = {
    *("_name_or_path", "name_or_path", "_commit_hash", "architectures", "model_type"),
    *("transformers_version", "transformers.js_config", "is_llama_config", "language"),
    *("id2label", "label2id", "num_labels", "problem_type", "finetuning_task"),
    *("task_specific_params", "tokenizer_class", "prefix"),
}
TRAINING_OPTIONS = {
    *("attention_probs_dropout_prob", "hidden_dropout_prob", "classifier_dropout"),
    *("classifier_dropout_prob", "attention_dropout", "attn_pdrop", "embd_pdrop", "resid_pdrop"),
    *("initializer_range", "gradient_checkpointing", "tf_legacy_loss"),
}
COMPUTING_OPTIONS = {  # they change results by rounding only
    *("torch_dtype", "dtype", "use_bfloat16", "torchscript", "_attn_implementation"),
    *("_attn_implementation_autoset", "chunk_size_feed_forward", "use_cache", "output_past"),
    *("return_dict", "output_hidden_states", "output_attentions", "pretraining_tp"),
    "reorder_and_upcast_attn",
}
TASK_OPTIONS = {  # heads of tasks, poolers, and how text is generated
    *("tie_word_embeddings", "tie_weights_", "pooler_fc_size", "pooler_num_attention_heads"),
    *("pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "directionality"),
    *("summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type"),
    *("summary_use_proj", "predict_special_tokens"),
    *("bos_token_id", "eos_token_id", "sep_token_id", "pad_token_id", "decoder_start_token_id"),
    *("max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups"),
    *("diversity_penalty", "temperature", "top_k", "top_p", "typical_p", "repetition_penalty"),
    *("length_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids"),
    *("num_return_sequences", "output_scores", "return_dict_in_generate", "forced_bos_token_id"),
    *("forced_eos_token_id", "remove_invalid_values", "exponential_decay_length_penalty"),
    *("suppress_tokens", "begin_suppress_tokens", "n_ctx", "max_sequence_length"),
}
HARMLESS_OPTIONS = ORIGIN_OPTIONS | TRAINING_OPTIONS | COMPUTING_OPTIONS | TASK_OPTIONS

FIXED_OPTIONS = {  # options that no architecture reads, with the values that change nothing
    "pruned_heads": ({}, None),
    "is_encoder_decoder": (False, None),
    "tie_encoder_decoder": (False, None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "cross_attention_hidden_size": (None,),
    "quantization_config": (None,),
}
