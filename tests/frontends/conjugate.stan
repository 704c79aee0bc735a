// Eight conjugate models; `which` selects one, and the parameters of the others are empty.
data {
  int<lower=1, upper=8> which;
  int<lower=0> N;
  int<lower=0> K;
  vector[N] y;
  array[N] int counts;
  array[N] int trials;
  matrix[N, K] X;
  vector<lower=0>[K] alpha;
  real<lower=0> a;
  real<lower=0> b;
  real<lower=0> scale;
  real<lower=0> noise;
}
parameters {
  vector[which == 1 || which == 5 ? 1 : 0] mu;
  vector<lower=0, upper=1>[which == 2 ? 1 : 0] probability;
  vector<lower=0>[which == 3 || which == 7 ? 1 : 0] rate;
  array[which == 4 ? 1 : 0] simplex[K] share;
  vector<lower=0>[which == 5 ? 1 : 0] variance;
  vector[which == 6 ? K : 0] slope;
  array[which == 8 ? 1 : 0] cholesky_factor_corr[2] factor;
}
transformed parameters {
  vector[which == 8 ? 1 : 0] correlation;
  if (which == 8) {
    correlation[1] = factor[1][2, 1];
  }
}
model {
  if (which == 1) {
    mu ~ normal(0, scale);
    y ~ normal(mu[1], noise);
  } else if (which == 2) {
    probability ~ beta(a, b);
    counts ~ binomial(trials, probability[1]);
  } else if (which == 3) {
    rate ~ gamma(a, b);
    counts ~ poisson(rate[1]);
  } else if (which == 4) {
    share[1] ~ dirichlet(alpha);
    counts ~ multinomial(share[1]);
  } else if (which == 5) {
    variance ~ inv_gamma(a, b);
    mu ~ normal(0, scale * sqrt(variance[1]));
    y ~ normal(mu[1], sqrt(variance[1]));
  } else if (which == 6) {
    slope ~ normal(0, scale);
    y ~ normal(X * slope, noise);
  } else if (which == 7) {
    rate ~ gamma(a, b);
    y ~ exponential(rate[1]);
  } else {
    factor[1] ~ lkj_corr_cholesky(a);
    counts ~ binomial(trials, 0.5 + 0.5 * correlation[1]);
  }
}
generated quantities {
  vector[N] log_lik;
  array[2] real fresh = {normal_rng(0, 1), normal_rng(0, 1)};
  for (i in 1 : N) {
    log_lik[i] = which == 3 ? poisson_lpmf(counts[i] | rate[1]) : 0;
  }
}
